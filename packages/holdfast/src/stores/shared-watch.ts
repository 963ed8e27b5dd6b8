/** Turns the listener on; answers with what takes it off. */
type Start = (onBack: () => void) => () => void;

interface Watch {
  readonly backs: Set<() => void>;
  readonly stop: () => void;
}

const watches = new WeakMap<object, Watch>();

/**
 * One listener for all stores on one client: Node warns of a leak at the eleventh listener, and a process may have as
 * many Holdfasts on a client as it likes. Turned on with the first store, off with the last.
 */
export function sharedWatch(client: object, start: Start): Start {
  return (onBack) => {
    const watch = watches.get(client) ?? newWatch(start);
    watches.set(client, watch);
    // A function of its own: the same callback may watch twice.
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
