/** What nodes of a cluster say of each other. */

/** What takes commands for a node. */
interface Node {
  command(...words: (string | number)[]): Promise<unknown>;
}

/** What one node says of one. */
export interface NodeLine {
  readonly id: string;
  readonly isItself: boolean;
  readonly master: string;
  readonly epoch: number;
  readonly slots: readonly (readonly [number, number])[];
}

/** Who says that it has that slot, the newest claim first. */
export function ownerIn(lines: readonly NodeLine[], slot: number): NodeLine | undefined {
  return lines.find(({ slots }) => slots.some(([from, to]) => from <= slot && slot <= to));
}

/** The lines of CLUSTER NODES. */
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
      // Who was failed over stays listed for a while, with its slots.
      slots: flags.includes("fail") ? [] : ranges.map(([from = 0, to = from]) => [from, to] as const),
    };
  });
}

/** What the node believes, in a form that can be compared; undefined while something is amiss. */
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
