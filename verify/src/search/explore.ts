/**
 * Breadth-first search through all states of a world, so that the first violation found is one of the shortest.
 *
 * The search stops at the first violation. If there is none, it goes backward from the good states along steps that
 * are not faults. States that it does not reach are stuck; this is how a lost wake-up is found.
 */
import { Numbers, SeenStates } from "./seen-states.js";

/** A possible next step. */
export interface Step<State> {
  /** A description of the step. */
  readonly label: string;
  readonly next: State;
  /** Whether it is a fault or optional: progress must not depend on it. */
  readonly isFault: boolean;
  /** What it violates, if anything. */
  readonly violation: string | undefined;
}

/** A small world. */
export interface World<State> {
  readonly initial: State;
  steps(state: State): Promise<readonly Step<State>[]>;
  /** What is wrong with the state, if anything. */
  violation(state: State): string | undefined;
  /** Whether all clients have what they wanted. */
  isGood(state: State): boolean;
  /** A text that is equal for states that behave the same; `parse` reads it. */
  text(state: State): string;
  parse(text: string): State;
}

/** The result of a search. */
export interface Explored {
  /** `capped`: no violation among the first `maxStates` states. */
  readonly verdict: "holds" | "violated" | "capped";
  readonly violation: string | undefined;
  /** The steps that led to the violation. */
  readonly trace: readonly string[];
  readonly states: number;
  readonly steps: number;
}

/** Explores `world` until a violation, the end, or `maxStates` states. */
export async function explore<State>(world: World<State>, maxStates: number): Promise<Explored> {
  const seen = new SeenStates();
  const parents = new Numbers();
  const edges = new Numbers();
  const good: number[] = [];
  const texts: string[] = [world.text(world.initial)];
  let steps = 0;
  seen.add(texts[0] ?? "");
  parents.push(0);

  for (let at = 0; at < seen.size; at++) {
    if (seen.size > maxStates) {
      return { verdict: "capped", violation: undefined, trace: [], states: seen.size, steps };
    }
    const state = world.parse(texts[at] ?? "");
    // The text of an expanded state is no longer needed, only its number.
    texts[at] = "";
    if (world.isGood(state)) good.push(at);
    for (const step of await world.steps(state)) {
      steps += 1;
      const violation = step.violation ?? world.violation(step.next);
      if (violation !== undefined) {
        const trace = await retrace(world, seen, pathTo(parents, at), violation);
        return { verdict: "violated", violation, trace, states: seen.size, steps };
      }
      const text = world.text(step.next);
      const size = seen.size;
      const to = seen.add(text);
      if (to === size) {
        texts.push(text);
        parents.push(at);
      }
      if (step.isFault) continue;
      edges.push(at);
      edges.push(to);
    }
  }

  const stuck = firstStuck(seen.size, edges, good);
  if (stuck === undefined) return { verdict: "holds", violation: undefined, trace: [], states: seen.size, steps };
  const trace = await retrace(world, seen, pathTo(parents, stuck));
  return {
    verdict: "violated",
    violation: "stuck: from here on, a waiter waits forever",
    trace,
    states: seen.size,
    steps,
  };
}

function pathTo(parents: Numbers, number: number): number[] {
  const path: number[] = [];
  for (let at = number; at > 0; at = parents.at(at)) path.push(at);
  return path.reverse();
}

/**
 * Replays `path` to get the labels of its steps with the original names, because a world may exchange names on the way.
 * The last step, which is not in the path, leads to `violation`, if there is one.
 */
async function retrace<State>(
  world: World<State>,
  seen: SeenStates,
  path: readonly number[],
  violation?: string,
): Promise<string[]> {
  const labels: string[] = [];
  let state = world.initial;
  for (const number of path) {
    const step = (await world.steps(state)).find(({ next }) => seen.is(number, world.text(next)));
    if (step === undefined) throw new Error(`the path to the violation cannot be replayed after ${labels.join(", ")}`);
    labels.push(step.label);
    state = step.next;
  }
  if (violation === undefined) return labels;
  const last = (await world.steps(state)).find(
    ({ next, violation: broken }) => (broken ?? world.violation(next)) === violation,
  );
  if (last === undefined) throw new Error(`the violation does not occur again after ${labels.join(", ")}`);
  return [...labels, last.label];
}

/** The first state from which no good one is reachable; `edges` are pairs of numbers. */
function firstStuck(count: number, edges: Numbers, good: readonly number[]): number | undefined {
  const heads = new Int32Array(count).fill(-1);
  const nexts = new Int32Array(edges.length / 2);
  for (let edge = 0; edge < nexts.length; edge++) {
    const to = edges.at(edge * 2 + 1);
    nexts[edge] = heads[to] ?? -1;
    heads[to] = edge;
  }
  const reached = new Uint8Array(count);
  const stack = [...good];
  for (const state of good) reached[state] = 1;
  for (let state = stack.pop(); state !== undefined; state = stack.pop()) {
    for (let edge = heads[state] ?? -1; edge >= 0; edge = nexts[edge] ?? -1) {
      const from = edges.at(edge * 2);
      if (reached[from] === 1) continue;
      reached[from] = 1;
      stack.push(from);
    }
  }
  const stuck = reached.indexOf(0);
  return stuck < 0 ? undefined : stuck;
}
