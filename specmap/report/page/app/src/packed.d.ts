declare module "packed:*" {
  /** A built script, gzip in base64. */
  const packed: string;
  export default packed;
}
