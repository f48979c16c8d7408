/**
 * Validation of names of organizations, deployments and people, and of e-mail
 * addresses. Each check describes the fault, or returns undefined.
 */

/** RFC 1123, section 2.1, in lower case, because names are part of hosts. */
export const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Hosts below a platform's domain that are, or may become, the platform's own. */
export const RESERVED: ReadonlySet<string> = new Set([
  "admin",
  "api",
  "app",
  "apps",
  "assets",
  "auth",
  "cdn",
  "console",
  "docs",
  "grpc",
  "help",
  "internal",
  "local",
  "localhost",
  "login",
  "mail",
  "metrics",
  "operator",
  "root",
  "static",
  "status",
  "support",
  "system",
  "tessera",
  "www",
]);

/** E-mail address: the longest that SMTP can deliver to. */
const MAX_EMAIL_CHARACTERS = 254;

/** One address with a domain. A pattern cannot tell whether mail arrives there. */
const EMAIL = /^[^\s@"(),:;<>[\]\\\p{C}]{1,64}@[^\s@"(),:;<>[\]\\\p{C}]+$/u;

/** Describes the fault of a deployment's name; undefined when it is valid. */
export function faultOfName(name: string): string | undefined {
  return DNS_LABEL.test(name)
    ? undefined
    : "must be 1 to 63 lower case letters, digits and hyphens, with a letter or digit at both ends";
}

/** The same for an organization's name; the platform reserves some. */
export function faultOfOrganizationName(name: string): string | undefined {
  // Names of the form `xn--…` encode other names (RFC 5890, section 2.3.2.1).
  const reserved = RESERVED.has(name) || name.startsWith("xn--");
  return faultOfName(name) ?? (reserved ? "is reserved: choose another" : undefined);
}

/** The same for an e-mail address. */
export function faultOfEmail(email: string): string | undefined {
  return email.length <= MAX_EMAIL_CHARACTERS && EMAIL.test(email)
    ? undefined
    : "must be an e-mail address, such as ada@example.com";
}

/** The same for the name that people read of a person or an organization; it may be empty. */
export function faultOfDisplayName(name: string): string | undefined {
  return /\p{Cc}/u.test(name) ? "must have no control characters" : undefined;
}

/** Normalizes an address: addresses are stored and compared in lower case. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase();
}
