/**
 * Breadth first through all states of a world, so that the first violation found is one of the shortest.
 *
 * A world is left at the first violation. When there is none, the states are gone through once more, backwards from
 * the good ones, along the steps that are no faults: whoever is not reached is stuck, which is how a lost wake-up shows.
 */

/** One thing that can happen next. */
export interface Step<State> {
  /** What happens, to be read by a person. */
  readonly label: string;
  readonly next: State;
  /** Whether it is a fault, or something that nobody has to do: nothing may depend on it to go on. */
  readonly isFault: boolean;
  /** What it breaks, if it breaks anything. */
  readonly violation: string | undefined;
}

/** A small world. */
export interface World<State> {
  readonly initial: State;
  steps(state: State): Promise<readonly Step<State>[]>;
  /** What is wrong with the state, if anything is. */
  violation(state: State): string | undefined;
  /** Whether everybody has got what they wanted. */
  isGood(state: State): boolean;
  /** The same text for states that behave the same; `parse` reads it. */
  text(state: State): string;
  parse(text: string): State;
}

/** What came of a search. */
export interface Explored {
  /** `capped`: no violation among the first `maxStates` states. */
  readonly verdict: "holds" | "violated" | "capped";
  readonly violation: string | undefined;
  /** What happened, one step after the other, up to the violation. */
  readonly trace: readonly string[];
  readonly states: number;
  readonly steps: number;
}

/** Goes through `world` until a violation, the end, or `maxStates` states. */
export async function explore<State>(world: World<State>, maxStates: number): Promise<Explored> {
  const texts: string[] = [];
  const parents: number[] = [];
  const labels: string[] = [];
  const numbers = new Map<string, number>();
  const edges: number[] = [];
  const good: number[] = [];
  let steps = 0;

  const trace = (from: number, last?: string): string[] => {
    const path = last === undefined ? [] : [last];
    for (let at = from; at > 0; at = parents[at] ?? 0) path.push(labels[at] ?? "");
    return path.reverse();
  };
  const violated = (violation: string, path: string[]): Explored => {
    return { verdict: "violated", violation, trace: path, states: texts.length, steps };
  };
  const add = (text: string, parent: number, label: string): number => {
    const number = texts.push(text) - 1;
    numbers.set(text, number);
    parents.push(parent);
    labels.push(label);
    return number;
  };

  add(world.text(world.initial), 0, "");
  for (let at = 0; at < texts.length; at++) {
    if (texts.length > maxStates) {
      return { verdict: "capped", violation: undefined, trace: [], states: texts.length, steps };
    }
    const state = world.parse(texts[at] ?? "");
    if (world.isGood(state)) good.push(at);
    for (const step of await world.steps(state)) {
      steps += 1;
      const violation = step.violation ?? world.violation(step.next);
      if (violation !== undefined) return violated(violation, trace(at, step.label));
      const text = world.text(step.next);
      const to = numbers.get(text) ?? add(text, at, step.label);
      if (!step.isFault) edges.push(at, to);
    }
  }

  const stuck = firstStuck(texts.length, edges, good);
  if (stuck !== undefined) return violated("stuck: from here on somebody waits for ever", trace(stuck));
  return { verdict: "holds", violation: undefined, trace: [], states: texts.length, steps };
}

/** The first state from which no good one can be reached; `edges` are pairs of numbers. */
function firstStuck(count: number, edges: readonly number[], good: readonly number[]): number | undefined {
  const heads = new Int32Array(count).fill(-1);
  const nexts = new Int32Array(edges.length / 2);
  for (let edge = 0; edge < nexts.length; edge++) {
    const to = edges[edge * 2 + 1] ?? 0;
    nexts[edge] = heads[to] ?? -1;
    heads[to] = edge;
  }
  const reached = new Uint8Array(count);
  const stack = [...good];
  for (const state of good) reached[state] = 1;
  for (let state = stack.pop(); state !== undefined; state = stack.pop()) {
    for (let edge = heads[state] ?? -1; edge >= 0; edge = nexts[edge] ?? -1) {
      const from = edges[edge * 2] ?? 0;
      if (reached[from] === 1) continue;
      reached[from] = 1;
      stack.push(from);
    }
  }
  const stuck = reached.indexOf(0);
  return stuck < 0 ? undefined : stuck;
}
