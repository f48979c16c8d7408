/** Parses platform URLs and tokens. */
import { usageError } from "./failure.ts";

/** Parses the URL of a platform; accepts a bare host. */
export function parseEndpoint(name: string, text: string): string {
  const trimmed = text.trim();
  const local = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:\/|$)/i.test(trimmed);
  const schemed = /^[a-z][a-z0-9+.-]*:\/\//i.test(trimmed)
    ? trimmed
    : `${local ? "http" : "https"}://${trimmed}`;
  const url = URL.canParse(schemed) ? new URL(schemed) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
    throw usageError(`${name} is not a URL such as https://tessera.example.com`);
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw usageError(
      `${name} must be a plain URL such as https://tessera.example.com: without a name, a password or anything after ? or #`,
    );
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Parses a token. Errors do not quote it. */
export function parseToken(name: string, text: string): string {
  const trimmed = text.trim();
  if (!isSendable(trimmed)) {
    throw usageError(
      `${name} is not a token: tokens begin with tsrp_ or tsro_ and have no spaces in them`,
    );
  }
  return trimmed;
}

/** Whether a header can carry the token. */
export function isSendable(token: string): boolean {
  return /^[!-~]{1,1024}$/.test(token);
}
