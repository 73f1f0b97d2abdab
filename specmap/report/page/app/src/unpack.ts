// What the page carries, unpacked: base64, gzip, then the JSON and the columns behind it.
import type { Column, Page } from "./data.ts";

/** Decode base64, white space allowed. */
export function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
  return bytes;
}

/** Inflate gzip in base64. */
export async function inflate(base64: string): Promise<ArrayBuffer> {
  const stream = new Blob([bytesOf(base64)]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** Take the inflated bytes apart: length of the JSON, the JSON, and from a multiple of 8 the columns. */
export function split(bytes: ArrayBuffer): { page: Page; columns: Columns } {
  const length = new DataView(bytes).getUint32(0, true);
  const page = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as Page;
  return { page, columns: new Columns(bytes, Math.ceil((4 + length) / 8) * 8) };
}

const TYPES = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f64: Float64Array };

export type Numbers = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** Numbers of the timeline, decoded when asked for. Bytes are little-endian, as every browser's machine is. */
export class Columns {
  readonly #bytes: ArrayBuffer;
  readonly #start: number;

  constructor(bytes: ArrayBuffer, start: number) {
    this.#bytes = bytes;
    this.#start = start;
  }

  /** A column's values; with `delta` they are summed up, in 64-bit floats so that nothing overflows. */
  values(column: Column): Numbers {
    const raw = new TYPES[column.type](this.#bytes, this.#start + column.at, column.count);
    if (!column.delta) return raw;
    const values = new Float64Array(raw.length);
    let sum = 0;
    for (let index = 0; index < raw.length; index++) values[index] = sum += raw[index] ?? 0;
    return values;
  }
}
