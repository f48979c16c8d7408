/** Writes a mail twice: as plain text, and as HTML without pictures, styles or scripts. */
import type { Mail } from "./mailer.ts";

/** A link on a line of its own, shown as it is: people see where it leads. */
export interface Link {
  readonly url: string;
}

/** Paragraphs of plain text, with links between them. */
export function letter(
  { to, subject }: Pick<Mail, "to" | "subject">,
  paragraphs: readonly (string | Link)[],
): Mail {
  const text = paragraphs.map((one) => (typeof one === "string" ? one : one.url)).join("\n\n");
  const html = paragraphs.map(
    (one) => `<p>${typeof one === "string" ? escaped(one) : anchor(one)}</p>`,
  );
  const head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(subject)}</title></head>`;
  return {
    to,
    subject,
    text: `${text}\n`,
    html: `${head}<body>${html.join("\n")}</body></html>\n`,
  };
}

function anchor({ url }: Link): string {
  return `<a href="${escaped(url)}">${escaped(url)}</a>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
