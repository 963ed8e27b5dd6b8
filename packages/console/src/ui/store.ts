/** An observable value for components. */
import { useEffect, useState } from "preact/hooks";

/** A value and its subscribers. */
export class Store<Value> {
  #value: Value;
  readonly #listeners = new Set<() => void>();

  constructor(value: Value) {
    this.#value = value;
  }

  get value(): Value {
    return this.#value;
  }

  /** Sets the value and notifies subscribers if it has changed. */
  set(value: Value): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of [...this.#listeners]) listener();
  }

  /** @returns a function that unsubscribes */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** The value of a store, in a component that rerenders when it changes. */
export function useStore<Value>(store: Store<Value>): Value {
  const [, redraw] = useState({});
  const [seen] = useState({ value: store.value });
  seen.value = store.value;
  useEffect(() => {
    const update = (): void => {
      if (!Object.is(seen.value, store.value)) redraw({});
    };
    update(); // it may have changed between rendering and subscribing
    return store.subscribe(update);
  }, [store]);
  return store.value;
}
