/** Messages about a database that cannot be used: its address, the error, and what to do. */
import pg from "pg";
import { NewerSchema } from "./schema.ts";

/** Returns a database's address without its password. */
export function addressOf(url: string): string {
  try {
    const { protocol, username, host, pathname } = new URL(url);
    return `${protocol}//${username === "" ? "" : `${username}@`}${host}${pathname}`;
  } catch {
    return "postgres://…";
  }
}

/** Turns the error of a failed start into one message that says what to do. */
export function refusal(url: string, err: unknown): Error {
  const cause = err instanceof Error && err.cause instanceof Error ? err.cause : err;
  return new Error(`cannot open the database ${addressOf(url)}: ${reasonOf(cause, url)}`, {
    cause: err,
  });
}

function reasonOf(err: unknown, url: string): string {
  const message = err instanceof Error ? err.message : String(err);
  if (err instanceof NewerSchema) {
    return message;
  }
  const code = String((err as { readonly code?: unknown }).code ?? "");
  if (err instanceof pg.DatabaseError) {
    return `${message}${REMEDIES[code] ?? ""}`;
  }
  const remedy = REMEDIES[code];
  if (remedy !== undefined) {
    return remedy;
  }
  if (code === "ERR_INVALID_URL" || !URL.canParse(url)) {
    return "it is not a valid address; write postgres://user:password@host:5432/name";
  }
  if (/timeout/i.test(message)) {
    return "it does not answer; check the host and the port, and that no firewall is between";
  }
  return /does not support SSL/.test(message)
    ? "it does not speak TLS; leave sslmode out of the address, or switch TLS on there"
    : message || code;
}

/** By SQLSTATE, appended to the server's message; by errno, instead of the system's message. */
const REMEDIES: Readonly<Record<string, string>> = {
  "28P01": "; check the user and the password in the address",
  "28000":
    "; the server's pg_hba.conf does not let this user in from here, or wants TLS (sslmode=require)",
  "3D000": "; create it, or name another in the address",
  "42501": "; grant this user CREATE on the database, or have its owner start tessera once",
  "53300": "; raise max_connections there, or close other programs",
  "57P03": "; it is starting or stopping, try again in a moment",
  "25006": "; it is a standby, use the address of the primary",
  ECONNREFUSED: "nothing listens there; check the host and the port, and that Postgres runs",
  ENOTFOUND: "the host is not known; check the address",
  EAI_AGAIN: "the host cannot be looked up; check the address and the name server",
  EHOSTUNREACH: "the host cannot be reached; check the address and the network",
  ENETUNREACH: "the host cannot be reached; check the address and the network",
  ETIMEDOUT: "it does not answer; check the host and the port, and that no firewall is between",
};
