/** Adds the listener. @returns removes it */
type Start = (onBack: () => void) => () => void;

interface Watch {
  readonly backs: Set<() => void>;
  readonly stop: () => void;
}

const watches = new WeakMap<object, Watch>();

/**
 * Shares one listener among all stores on one client. A process may have any number of Holdfasts on a client, but Node warns of a
 * leak at the eleventh listener. The listener is added with the first store and removed with the last.
 */
export function sharedWatch(client: object, start: Start): Start {
  return (onBack) => {
    const watch = watches.get(client) ?? newWatch(start);
    watches.set(client, watch);
    // Wrapped in a new function, because the same callback may be registered twice.
    const own = (): void => onBack();
    watch.backs.add(own);
    return () => {
      if (!watch.backs.delete(own) || watch.backs.size > 0) return;
      watches.delete(client);
      watch.stop();
    };
  };
}

function newWatch(start: Start): Watch {
  const backs = new Set<() => void>();
  const stop = start(() => {
    for (const back of backs) back();
  });
  return { backs, stop };
}
