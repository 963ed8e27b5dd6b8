// @ts-check
/** A host whose clock is wrong: what it takes for the time, as soon as it says so. */
const RealDate = Date;

/** @param {number} offsetMs */
export function setClock(offsetMs) {
  globalThis.Date = /** @type {any} */ (
    class extends RealDate {
      /** @param {any[]} given */
      constructor(...given) {
        // @ts-expect-error whatever a Date takes
        super(...(given.length === 0 ? [RealDate.now() + offsetMs] : given));
      }
      /** @override */
      static now() {
        return RealDate.now() + offsetMs;
      }
    }
  );
}

/** What the time is in truth, in ms since 1970. */
export const realMs = () => RealDate.now();
