/** Explains connection failures that TLS causes, and reads the files that flags name. */
import { readFileSync } from "node:fs";
import { usageError } from "./exit-codes.js";
import type { CommonFlags } from "./flags.js";

/** @throws CliError 64 */
export function fileOf(flag: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw usageError(`${flag} cannot be read: ${(error as Error).message}`);
  }
}

/** Returns the first line, because OpenSSL's error messages have several lines. */
export function firstLineOf(text: string): string {
  return text.split("\n")[0] ?? "";
}

const SPEAKS_NO_TLS = /wrong version number|packet length too long|record layer failure|http request/i;
const WANTS_CERTIFICATE = /certificate required|handshake failure/i;
const UNKNOWN_AUTHORITY = /self[- ]signed|unable to (?:verify|get)/i;
const NO_TLS_YET = /\bE(?:CONNREFUSED|HOSTUNREACH|NETUNREACH|AI_AGAIN)\b|ENOTFOUND|certificate|handshake/;

/**
 * Returns a hint in parentheses; empty if TLS is not the cause.
 *
 * @param why  the error that ended the connection
 */
export function tlsHint({ urls, tls }: CommonFlags, why: string): string {
  if (!urls.some((url) => url.startsWith("rediss:"))) return "";
  if (SPEAKS_NO_TLS.test(why)) return " (that port does not speak TLS: use a redis:// URL)";
  if (WANTS_CERTIFICATE.test(why)) {
    return tls.cert === undefined ? " (it requires a client certificate: --tls-cert, --tls-key)" : "";
  }
  if (UNKNOWN_AUTHORITY.test(why)) {
    return tls.ca === undefined
      ? " (its certificate is from an unknown authority: --tls-ca)"
      : " (its certificate is not from an authority in --tls-ca)";
  }
  if (NO_TLS_YET.test(why)) return "";
  const certificate = tls.cert === undefined ? " Does it require a client certificate? Use --tls-cert, --tls-key" : "";
  return ` (does that port speak TLS?${certificate})`;
}
