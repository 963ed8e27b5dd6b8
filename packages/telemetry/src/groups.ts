/**
 * Maps lock names to groups. Lock names contain numbers and ids, and a metric has one series per label value, so
 * metrics use groups as labels.
 */
import { emitWarning } from "node:process";
import { checkWhole, show } from "holdfast/internal";

/** How lock names become groups. */
export interface GroupOptions {
  /**
   * Returns the group of a lock name. It must map all names to a small number of groups, and must always return the
   * same group for a name. It must be fast because it is called for every lock event.
   * @default {@link groupOf}, which replaces everything that looks like an id with `*`
   */
  readonly group?: ((lockName: string) => string) | undefined;
  /**
   * The maximum number of groups. Names in any further group count as the group `other`, and Holdfast warns once. More
   * groups mean more series to store. A whole number from 1 to 10,000.
   * @default 200
   */
  readonly groupsMax?: number | undefined;
}

/** The names of the options in `GroupOptions`. */
export const GROUP_OPTIONS: readonly (keyof GroupOptions)[] = ["group", "groupsMax"];

const REST = "other";
const LONGEST_WORD = 32;
const EMAIL = /^[^@]+@[^@]+\.[^@]+$/;
const IDS: readonly RegExp[] = [
  /^\d+$/,
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i,
  /^[0-7][0-9a-hjkmnp-tv-z]{25}$/i, // ULID
  /^[0-9a-f]{8,}$/i,
  /^\d{4}-\d\d-\d\d(T\d\d)?$/, // a time, as in the keys of node-cron; its minutes are separate segments
  /^\d+Z$/,
];
/**
 * The lock name of an HTTP request, such as `tenant/POST /payments 8e03978e`. The client chooses the last part, which
 * may contain spaces.
 */
const REQUEST = /^[^/]*(\/(?:POST|PATCH|PUT|DELETE) \S*) ./;

/**
 * Returns the name with every id replaced by `*`. An id is a segment that is a number, a UUID, a ULID, 8 or more
 * hexadecimal digits, a date, an email address, or longer than 32 characters. Segments are separated by `:` `/` `.`
 * `|`, so `order:8e03978e-40d5-43e8-bc93-6894a57f9324:pay` becomes `order:*:pay`. For a request with an
 * `Idempotency-Key`, only the method and the route remain.
 */
export function groupOf(lockName: string): string {
  const [, route] = REQUEST.exec(lockName) ?? [];
  const name = route === undefined ? lockName : `*${route} *`;
  // Checks for an email address before splitting at dots, because its domain contains dots.
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

/** Maps names to at most `groupsMax` groups. */
export class Groups {
  readonly #group: (lockName: string) => string;
  readonly #groupsMax: number;
  readonly #known = new Set<string>();
  #hasWarned = false;

  /** @throws TypeError, RangeError  invalid option */
  constructor({ group = groupOf, groupsMax = 200 }: GroupOptions) {
    if (typeof group !== "function")
      throw new TypeError(`group must be a function that takes a name; got ${show(group)}`);
    checkWhole("groupsMax", groupsMax, 1, 10_000);
    this.#group = group;
    this.#groupsMax = groupsMax;
  }

  /**
   * Returns the group of a lock name, or `other` if there are too many groups.
   *
   * @throws whatever the `group` option throws
   */
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
        `Lock names form more than ${this.#groupsMax} groups; names in further groups, such as ${show(group)}, count as "${REST}" in metrics. Pass a function \`group\` that forms fewer groups, or a larger \`groupsMax\`.`,
        { type: "HoldfastWarning", code: "HOLDFAST_TELEMETRY_GROUPS" },
      );
    }
    return REST;
  }
}
