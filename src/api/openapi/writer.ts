/** Writes the platform's OpenAPI document once, when it is first asked for. */
import { sessionCookieName } from "../../auth/session-cookie.ts";
import type { ServiceRegistration } from "../../server/rpc/engine/invoker.ts";
import { platformDocument } from "./document.ts";

interface DocumentWriterOptions {
  readonly version: string;
  /** As people sign in: over https the session's cookie has another name. */
  readonly secureCookies: boolean;
}

/** Returns a function that writes the document of these services as JSON text. */
export function documentWriter(
  services: () => readonly ServiceRegistration[],
  { version, secureCookies }: DocumentWriterOptions,
): () => string {
  const sessionCookie = sessionCookieName(secureCookies);
  let text: string | undefined;
  return () => {
    text ??= JSON.stringify(
      platformDocument(
        services().map(({ service }) => service),
        { version, sessionCookie },
      ),
    );
    return text;
  };
}
