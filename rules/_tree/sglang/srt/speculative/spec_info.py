from enum import Enum, auto


class SpeculativeAlgorithm(Enum):
    EAGLE = auto()
    NGRAM = auto()
    NONE = auto()

    @staticmethod
    def from_string(name):
        return SpeculativeAlgorithm[name or "NONE"]

    def is_none(self):
        return self == SpeculativeAlgorithm.NONE

    def is_ngram(self):
        return self == SpeculativeAlgorithm.NGRAM

    def create_worker(self, server_args):
        if self.is_ngram():
            from sglang.srt.speculative.ngram_worker import NGRAMWorker

            return NGRAMWorker
        from sglang.srt.speculative.eagle_worker import EAGLEWorker

        return EAGLEWorker
