/** The votes of the servers that an operation reports, in the format of redlock 5. */
import type { Redis as IORedisClient, Cluster as IORedisCluster } from "ioredis";

/** A client of one independent server or cluster. */
export type Client = IORedisClient | IORedisCluster;

/** The vote of one server. */
export type ClientExecutionResult =
  | {
      client: Client;
      vote: "for";
      /** The number of resources that the operation was applied to. */
      value: number;
    }
  | {
      client: Client;
      vote: "against";
      error: Error;
    };

/** All votes of one attempt. */
export type ExecutionStats = {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: Set<Client>;
  readonly votesAgainst: Map<Client, Error>;
};

/** The attempts of an operation that succeeded. */
export type ExecutionResult = {
  attempts: ReadonlyArray<Promise<ExecutionStats>>;
};
