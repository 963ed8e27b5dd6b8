/**
 * What stands for the name of a lock where names may not: a metric has one series for each of its labels, and names have numbers
 * and ids in them.
 */
import { emitWarning } from "node:process";
import { checkWhole, show } from "../../internal.js";

/** How names become groups. */
export interface GroupOptions {
  /**
   * The group of a name: few for all names. It is called for whatever is told of a lock, and must be quick, and give a name the same
   * group each time.
   * @default {@link groupOf}, which puts `*` in the place of what looks like an id
   */
  readonly group?: ((lockName: string) => string) | undefined;
  /**
   * How many groups there are at most; names of any further one are in the group `other`, and one warning says so. More are more
   * series to store. Whole number, 1 to 10,000.
   * @default 200
   */
  readonly groupsMax?: number | undefined;
}

/** Names of these options. */
export const GROUP_OPTIONS: readonly (keyof GroupOptions)[] = ["group", "groupsMax"];

const REST = "other";
const LONGEST_WORD = 32;
const EMAIL = /^[^@]+@[^@]+\.[^@]+$/;
const IDS: readonly RegExp[] = [
  /^\d+$/,
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
  /^[0-7][0-9a-hjkmnp-tv-z]{25}$/i, // ULID
  /^[0-9a-f]{8,}$/i,
  /^\d{4}-\d\d-\d\d(T\d\d)?$/, // of a time, such as node-cron has in its keys, whose minutes are segments of their own
  /^\d+Z$/,
];
/** The key of a request over HTTP, which its client chooses, with spaces in it if it likes: `tenant/POST /payments 8e03978e`. */
const REQUEST = /^[^/]*(\/(?:POST|PATCH|PUT|DELETE) \S*) ./;

/**
 * The name with `*` for each segment that is a number, a UUID, a ULID, hexadecimal of 8 digits or more, a date, an e-mail address, or
 * longer than 32 characters. Segments end at `:` `/` `.` `|`: `order:8e03978e-40d5-43e8-bc93-6894a57f9324:pay` is `order:*:pay`. Of a request
 * with an `Idempotency-Key` method and route are left.
 */
export function groupOf(lockName: string): string {
  const [, route] = REQUEST.exec(lockName) ?? [];
  const name = route === undefined ? lockName : `*${route} *`;
  // The domain of an address has points in it.
  return mapSegments(name, /([:/|])/, (part) => (EMAIL.test(part) ? "*" : mapSegments(part, /(\.)/, withoutId)));
}

function mapSegments(text: string, separator: RegExp, map: (segment: string) => string): string {
  return text
    .split(separator)
    .map((part, at) => (at % 2 === 0 ? map(part) : part))
    .join("");
}

function withoutId(segment: string): string {
  return segment.length > LONGEST_WORD || IDS.some((id) => id.test(segment)) ? "*" : segment;
}

/** The groups of one process, so many at most. */
export class Groups {
  readonly #group: (lockName: string) => string;
  readonly #groupsMax: number;
  readonly #known = new Set<string>();
  #hasWarned = false;

  /** @throws TypeError, RangeError  a wrong option */
  constructor({ group = groupOf, groupsMax = 200 }: GroupOptions) {
    if (typeof group !== "function") throw new TypeError(`group must be a function of a name; got ${show(group)}`);
    checkWhole("groupsMax", groupsMax, 1, 10_000);
    this.#group = group;
    this.#groupsMax = groupsMax;
  }

  /** @throws what the function of the user throws */
  of(lockName: string): string {
    const group = String(this.#group(lockName));
    if (this.#known.has(group)) return group;
    if (this.#known.size < this.#groupsMax) {
      this.#known.add(group);
      return group;
    }
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      emitWarning(
        `The names of locks fall into more than ${this.#groupsMax} groups, such as ${show(group)}: all further ones are counted as "${REST}". Give a function \`group\` that maps names to fewer, or a larger \`groupsMax\`.`,
        { type: "HoldfastWarning", code: "HOLDFAST_TELEMETRY_GROUPS" },
      );
    }
    return REST;
  }
}
