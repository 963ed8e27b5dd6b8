/** The attempts of each client in a quorum world, and which clients may change places. */

/** An attempt to acquire. */
export interface PlacedAttempt {
  readonly client: number;
  /** The client's letter and the attempt's number; also the owner id. */
  readonly name: string;
  readonly isFirst: boolean;
  readonly isLast: boolean;
}

/** The old numbers of the attempts, in a new order. */
export type Order = readonly number[];

const LETTERS = "abc";

/** The attempts of clients; `clients` has the number of attempts of each. A client makes them one after another. */
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

/** All orders that give the same world: clients with the same number of attempts may change places. */
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
