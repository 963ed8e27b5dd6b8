// @ts-check
/**
 * The table of contents of the site: the pages of each section, in reading order.
 *
 * A page is a path in `docs/` without `.md`. Its title is its first heading, unless a shorter one for the sidebar follows.
 */

/** @typedef {{ text: string, pages: ReadonlyArray<string | readonly [page: string, title: string]> }} Section */

/** @type {readonly Section[]} */
export const ENGLISH = [
  {
    text: "Start",
    pages: [
      "getting-started",
      "locks-in-plain-words",
      "choosing",
      "comparison",
      "examples",
      "coming-from-java",
      "clients",
    ],
  },
  {
    text: "Kinds",
    pages: [
      ["kinds", "All kinds"],
      ["kinds/mutex", "Mutex"],
      ["kinds/reentrant-mutex", "Reentrant mutex"],
      ["kinds/read-write-lock", "Read-write lock"],
      ["kinds/semaphore", "Semaphore"],
      ["kinds/count-down-latch", "Count-down latch"],
      ["kinds/barrier", "Barrier"],
      ["kinds/condition", "Condition"],
      ["kinds/multi-lock", "Multi-lock"],
      ["kinds/redlock", "Redlock"],
      ["kinds/election", "Election"],
      ["web-locks", "Web Locks"],
      ["passing-a-lease", "Passing a lease"],
    ],
  },
  {
    text: "Recipes",
    pages: [
      ["recipes/README", "All recipes"],
      ["recipes/when-not-to-lock", "When not to lock"],
      ["recipes/idempotency-key", "Idempotency key"],
      ["recipes/once", "Once"],
      ["recipes/scheduled", "Scheduled work"],
      ["recipes/lead", "Lead"],
      ["recipes/cache", "Cache"],
      ["recipes/coalesce", "Coalesce"],
      ["recipes/counter", "Counter"],
      ["recipes/fenced-writes", "Fenced writes"],
      ["recipes/keyed", "Keyed work"],
      ["recipes/migrations", "Migrations"],
      ["recipes/versioned", "Versioned values"],
      ["recipes/worker-slot", "Worker slots"],
      ["recipes/shutdown", "Shutdown"],
      ["recipes/nestjs", "NestJS"],
      ["recipes/bullmq", "BullMQ"],
      ["recipes/telemetry", "Telemetry"],
    ],
  },
  {
    text: "Operate",
    pages: [
      "production-checklist",
      "upgrading",
      "failover",
      "failures",
      "failure-costs",
      "troubleshooting",
      "faq",
      "server-settings",
      "permissions",
      "hosting",
      "serverless",
      "half-open-connections",
      "cli",
      "cli-operators",
      "cli-run",
      "cli-scripts",
      "console",
      "doctor",
      ["doctor-data", "Doctor: memory, failover"],
      ["doctor-access", "Doctor: access, topology"],
      ["doctor-operation", "Doctor: clocks, load, locks"],
      "looking",
      "pausing",
    ],
  },
  {
    text: "Migrate",
    pages: [
      ["migrate/index", "From another library"],
      ["migrate/redlock", "redlock"],
      ["migrate/redis-semaphore", "redis-semaphore"],
      ["migrate/verrou", "Verrou"],
      ["migrate/setnx-timestamp", "SETNX with a time"],
      ["migrate/redisson", "Redisson"],
      ["migrate/shedlock", "ShedLock"],
      ["migrate/postgres-advisory-locks", "Advisory locks of PostgreSQL"],
    ],
  },
  { text: "Share locks", pages: ["interop", "interop-timestamps", "interop-leaving", "redisson", "redisson-permits"] },
  {
    text: "Reference",
    pages: [
      "options",
      "options-holdfast",
      "options-kinds",
      "errors",
      "errors-more",
      "error-index",
      "metrics",
      "outcomes",
      "warnings",
      "fencing",
      "safety",
      "redis-keys",
      "platforms",
      "verification",
      "benchmarks",
      "glossary",
      ["README", "All pages"],
    ],
  },
];

/** Pages in Chinese: a path in `docs/zh/` without `.md`. @type {readonly Section[]} */
export const CHINESE = [
  { text: "入门", pages: ["getting-started", "plain-words", "choosing", "faq"] },
  { text: "运维与参考", pages: ["production-checklist", "errors", "migration"] },
];
