/** Who makes which attempt in a world of a quorum, and which clients may change places there. */

/** One attempt. */
export interface PlacedAttempt {
  readonly client: number;
  /** Letter of the client and number of the attempt, which is its owner id too. */
  readonly name: string;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** Old numbers of the attempts, in a new order. */
export type Order = readonly number[];

const LETTERS = "abc";

/** The attempts of clients that make so many each, one after the other. */
export function placesOf(clients: readonly number[]): PlacedAttempt[] {
  return clients.flatMap((attempts, client) =>
    [...Array(attempts).keys()].map((index) => ({
      client,
      name: `${LETTERS[client]}${index}`,
      isFirst: index === 0,
      isLast: index + 1 === attempts,
    })),
  );
}

/** All orders that lead to the same world: clients that make equally many attempts may change places. */
export function ordersOf(clients: readonly number[], places: readonly PlacedAttempt[]): Order[] {
  return permutations([...clients.keys()])
    .filter((order) => order.every((client, at) => clients[client] === clients[at]))
    .map((order) =>
      order.flatMap((client) => [...places.keys()].filter((number) => places[number]?.client === client)),
    );
}

function permutations(items: readonly number[]): number[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, at) => permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]));
}
