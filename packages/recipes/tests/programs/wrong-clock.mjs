// @ts-check
/** Simulates a host with a wrong clock by replacing `Date`. */
const RealDate = Date;

/** @param {number} offsetMs */
export function setClock(offsetMs) {
  globalThis.Date = /** @type {any} */ (
    class extends RealDate {
      /** @param {any[]} given */
      constructor(...given) {
        // @ts-expect-error Any arguments that Date accepts.
        super(...(given.length === 0 ? [RealDate.now() + offsetMs] : given));
      }
      /** @override */
      static now() {
        return RealDate.now() + offsetMs;
      }
    }
  );
}

/** The real time in milliseconds since 1970. */
export const realMs = () => RealDate.now();
