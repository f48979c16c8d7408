/** The charset of text bodies, which is UTF-8 (RFC 8259, section 8.1). */
import { problem } from "../../errors.ts";

/** Throws CONTENT_TYPE_UNSUPPORTED for a content type with a charset other than UTF-8. */
export function refuseCharset(contentType: string): void {
  const charset = /;\s*charset\s*=\s*"?([^\s";]*)/i.exec(contentType)?.[1];
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) {
    const message = `the charset ${JSON.stringify(charset)} is not read here: send the body in UTF-8`;
    throw problem("CONTENT_TYPE_UNSUPPORTED", message);
  }
}
