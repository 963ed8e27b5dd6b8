/** Parses what the nodes of a cluster report about each other. */

/** Sends commands to a node. */
interface Node {
  command(...words: (string | number)[]): Promise<unknown>;
}

/** What one node reports about another. */
export interface NodeLine {
  readonly id: string;
  readonly isItself: boolean;
  readonly master: string;
  readonly epoch: number;
  readonly slots: readonly (readonly [number, number])[];
}

/** The node that claims the slot; with several claims, the newest one. */
export function ownerIn(lines: readonly NodeLine[], slot: number): NodeLine | undefined {
  return lines.find(({ slots }) => slots.some(([from, to]) => from <= slot && slot <= to));
}

/** Parses the output of CLUSTER NODES. */
export function parse(text: string): NodeLine[] {
  const lines = text.trim() === "" ? [] : text.trim().split("\n");
  return lines.map((line) => {
    const [id = "", , flags = "", master = "", , , epoch = "0", , ...slots] = line.split(" ");
    const ranges = slots.filter((slot) => /^\d/.test(slot)).map((slot) => slot.split("-").map(Number));
    return {
      id,
      isItself: flags.includes("myself"),
      master,
      epoch: Number(epoch),
      // A node that was failed over stays listed with its slots for a while.
      slots: flags.includes("fail") ? [] : ranges.map(([from = 0, to = from]) => [from, to] as const),
    };
  });
}

/** The node's view in a comparable form; undefined if it sees a problem. */
export async function viewIfWell(node: Node, size: number): Promise<string | undefined> {
  const ask = (...words: string[]): Promise<string> => node.command(...words).then(String, () => "");
  const info = await ask("CLUSTER", "INFO");
  const text = await ask("CLUSTER", "NODES");
  const replication = await ask("INFO", "replication");
  const lines = parse(text).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  if (!info.includes("cluster_state:ok") || lines.length !== size || /handshake|noaddr/.test(text)) return undefined;
  if (!/role:master|master_link_status:up/.test(replication)) return undefined;
  return JSON.stringify(lines.map(({ id, master, slots }) => ({ id, master, slots })));
}
