/** The cluster slot of a lock name: CRC16 (XMODEM) of the name, which is the hash tag of its keys. */

const SLOTS = 16_384;
const POLYNOMIAL = 0x1021;

/** 0 to 16383. */
export function slotOf(lockName: string): number {
  let crc = 0;
  for (const byte of Buffer.from(lockName)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL) & 0xffff;
  }
  return crc % SLOTS;
}
