/**
 * S3: repeats earlier requests of an owner that no longer holds, as an outdated handle or a foreign client would.
 *
 * It calls the server directly, without the network and in no time, so a refused request does not change the run.
 */
import type { Reply } from "holdfast";
import { lockOf } from "./lock-of.js";
import type { Member } from "./member.js";
import { outcomeOf } from "./messages.js";
import type { Call } from "./network.js";
import type { SimulatedProcess } from "./process.js";
import { Random } from "./random.js";
import { OF_THE_OWNER } from "./witness.js";
import type { World } from "./world.js";

/** The number of attempts per run. */
const TIMES = 5;
/** The number of recent calls to choose from. */
const KEPT = 12;

interface Said {
  readonly process: SimulatedProcess;
  readonly call: Call;
}

/** Repeats requests of former holders. */
export class Trespasser {
  readonly #world: World<Member>;
  readonly #random: Random;
  readonly #said: Said[] = [];

  /** Schedules its attempts until `endMs`. */
  constructor(world: World<Member>, endMs: number) {
    this.#world = world;
    this.#random = new Random(world.setup.seed + 0.25 * 4_294_967_296);
    for (let time = 0; time < TIMES; time += 1) {
      world.plan(this.#random.between(0, endMs), "a former holder trespasses", () => this.#trespass());
    }
  }

  /** Records a script. */
  ran(process: SimulatedProcess, call: Call): void {
    if (!OF_THE_OWNER.has(call.script.name)) return;
    this.#said.push({ process, call });
    if (this.#said.length > KEPT) this.#said.shift();
  }

  #trespass(): void {
    const { recorder, members, isServerDown, serverFrozenUntilMs, nowMs } = this.#world;
    const over = this.#said.filter(
      ({ call }) => recorder.witness?.observer.isHolder(call, String(call.args[0])) === false,
    );
    const held = over.filter(({ call }) => recorder.witness?.observer.isHeld(call) === true);
    const said = held.length > 0 ? held : over;
    const [member] = members;
    if (said.length === 0 || member === undefined || isServerDown || serverFrozenUntilMs > nowMs) return;
    const { process, call } = this.#random.pick(said);
    const script = this.#world.scriptOf(call.script);
    void member.link.run(script, call.keys, call.args, 0).then((reply) => this.#answered(process, call, reply));
  }

  #answered(process: SimulatedProcess, call: Call, reply: Reply): void {
    const { judge, recorder } = this.#world;
    recorder.ran(process, call, reply);
    const outcome = outcomeOf(call.script.replies, reply);
    this.#world.trace(`  server: a former holder's ${call.script.name} ${call.args.join(" ")} -> ${outcome}`);
    if (outcome !== "extended" && outcome !== "released") return;
    judge.violated("S3", `${call.script.name} of ${lockOf(call)} was ${outcome} for a client that no longer holds it`);
  }
}
