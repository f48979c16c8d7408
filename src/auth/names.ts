/** What organizations, deployments and people may be called. Each check says what is wrong, or nothing. */

/** RFC 1123, section 2.1, in lower case; so that names can stand in hosts. */
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Hosts below a platform's domain that are, or may become, the platform's own. */
const RESERVED: ReadonlySet<string> = new Set([
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

const MAX_EMAIL_LENGTH = 254;

/** One address with a domain; whether mail arrives there is not for a pattern to say. */
const EMAIL = /^[^\s@"(),:;<>[\]\\\p{C}]{1,64}@[^\s@"(),:;<>[\]\\\p{C}]+$/u;

/** Describes what is wrong with a deployment's name; undefined: nothing. */
export function faultOfName(name: string): string | undefined {
  return DNS_LABEL.test(name)
    ? undefined
    : "must be 1 to 63 lower case letters, digits and hyphens, with a letter or digit at both ends";
}

/** The same for an organization's name, of which the platform keeps some to itself. */
export function faultOfOrganizationName(name: string): string | undefined {
  // Names of the form `xn--…` are other names in disguise (RFC 5890, section 2.3.2.1).
  const reserved = RESERVED.has(name) || name.startsWith("xn--");
  return faultOfName(name) ?? (reserved ? "is reserved: choose another" : undefined);
}

/** The same for an e-mail address. */
export function faultOfEmail(email: string): string | undefined {
  return email.length <= MAX_EMAIL_LENGTH && EMAIL.test(email)
    ? undefined
    : "must be an e-mail address, such as ada@example.com";
}

/** Addresses are compared, and kept, in lower case. */
export function normalizeEmail(email: string): string {
  return email.trim().toLowerCase();
}
