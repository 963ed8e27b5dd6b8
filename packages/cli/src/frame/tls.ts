/** The `--tls-*` flags: checked before anything is connected, and what to say when TLS is why nothing is. */
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { usageError } from "./exit-codes.js";
import type { CommonFlags } from "./flags.js";

/** Of `tls.connect`. */
export interface TlsFiles {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/**
 * The files of the flags.
 *
 * @param isSecure  whether a URL begins with rediss://
 * @throws CliError 64  flags that nothing is done with; a certificate without its key, or with another's; a file that cannot be
 *                      read, or is not what the flag wants
 */
export function tlsOf({ tls }: CommonFlags, isSecure: boolean): TlsFiles {
  const given = (["ca", "cert", "key"] as const).filter((one) => tls[one] !== undefined);
  if (given.length > 0 && !isSecure) {
    throw usageError(`--tls-${given[0]} needs a URL that begins with rediss://: redis:// is without TLS`);
  }
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw usageError(tls.key === undefined ? "--tls-cert goes with --tls-key" : "--tls-key goes with --tls-cert");
  }
  const files: TlsFiles = Object.fromEntries(
    given.map((one) => [one, fileOf(`--tls-${one}`, tls[one] as string)] as const),
  );
  const { ca, cert, key } = files;
  if (ca !== undefined) checkCertificate("--tls-ca", ca);
  if (cert === undefined || key === undefined) return files;
  checkCertificate("--tls-cert", cert);
  attempt("--tls-key must be the key of --tls-cert, in PEM and without a passphrase", () =>
    createSecureContext({ cert, key }),
  );
  return files;
}

/** @throws CliError 64 */
export function fileOf(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw usageError(`${flag} cannot be read: ${(error as Error).message}`);
  }
}

function checkCertificate(flag: string, bytes: Buffer): void {
  const rule = `${flag} must be a file with a certificate in PEM`;
  if (!bytes.includes("-----BEGIN ")) throw usageError(`${rule}; it has none`);
  attempt(rule, () => new X509Certificate(bytes));
}

function attempt(rule: string, act: () => unknown): void {
  try {
    act();
  } catch (error) {
    throw usageError(`${rule}: ${firstLineOf((error as Error).message)}`);
  }
}

/** OpenSSL's texts go on for lines. */
export function firstLineOf(text: string): string {
  return text.split("\n")[0] ?? "";
}

const SPEAKS_NO_TLS = /wrong version number|packet length too long|record layer failure|http request/i;
const WANTS_CERTIFICATE = /certificate required|handshake failure/i;
const UNKNOWN_AUTHORITY = /self[- ]signed|unable to (?:verify|get)/i;
const NO_TLS_YET = /\bE(?:CONNREFUSED|HOSTUNREACH|NETUNREACH|AI_AGAIN)\b|ENOTFOUND|certificate|handshake/;

/**
 * What may help, in parentheses; empty if TLS is not why.
 *
 * @param why  what the connection ended with
 */
export function tlsHint({ urls, tls }: CommonFlags, why: string): string {
  if (!urls.some((url) => url.startsWith("rediss:"))) return "";
  if (SPEAKS_NO_TLS.test(why)) return " (that port does not speak TLS: without it the URL begins with redis://)";
  if (WANTS_CERTIFICATE.test(why)) {
    return tls.cert === undefined ? " (it wants a certificate of ours: --tls-cert, --tls-key)" : "";
  }
  if (UNKNOWN_AUTHORITY.test(why)) {
    return tls.ca === undefined
      ? " (an authority that is not known here: --tls-ca)"
      : " (it is not of an authority in --tls-ca)";
  }
  if (NO_TLS_YET.test(why)) return "";
  const certificate = tls.cert === undefined ? " Does it want a client certificate? --tls-cert, --tls-key" : "";
  return ` (does that port speak TLS?${certificate})`;
}
