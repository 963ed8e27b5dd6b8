// @ts-check
/** Finds the servers that `npm run bench -- --server LIST` names. */
import { cells } from "./matrix/cells.mjs";

/** The servers of the matrix. Those of one family are in order from oldest to newest. */
const SERVERS = cells.filter(({ server }) => server !== undefined).map(({ name }) => name);

/**
 * @param {string} list  names of servers, separated by commas; a prefix such as `valkey` means the newest of that family
 * @returns {readonly string[]} names of pins without duplicates
 * @throws RangeError  there is no such server
 */
export function serversNamed(list) {
  const names = list.split(",").map((word) => {
    const name = SERVERS.includes(word) ? word : SERVERS.findLast((one) => one.startsWith(`${word}-`));
    if (name === undefined) {
      throw new RangeError(`--server must be one or more of ${SERVERS.join(", ")}; got ${JSON.stringify(word)}`);
    }
    return name;
  });
  return [...new Set(names)];
}
