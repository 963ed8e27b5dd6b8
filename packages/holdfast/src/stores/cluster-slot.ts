/**
 * The cluster slot of a key or channel, as Redis Cluster specifies it: CRC16 (XMODEM) of the hash tag, modulo 16,384.
 */
export function clusterSlot(key: string): number {
  let crc = 0;
  for (const byte of Buffer.from(hashTag(key))) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
    crc &= 0xffff;
  }
  return crc % 16_384;
}

/** The hashed part: the text between the first `{` and the next `}`, or the whole key if there is no such text. */
function hashTag(key: string): string {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

const tags = new Map<number, string>();
let tried = 0;

/**
 * Returns a short hash tag for keys in this cluster slot. The tag is the same in every process and must never change.
 */
export function tagOf(slot: number): string {
  for (;;) {
    const known = tags.get(slot);
    if (known !== undefined) return known;
    const tag = String(tried);
    const its = clusterSlot(tag);
    if (!tags.has(its)) tags.set(its, tag);
    tried += 1;
  }
}
