def is_cuda():
    return True


def is_hip():
    return False


def is_npu():
    return False
