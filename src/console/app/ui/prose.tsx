/** Text with code between backticks, as comments of the API have it. */
import type { ReactNode } from "react";

export function inlineCode(text: string): ReactNode {
  return text.split("`").map((part, index) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: the text does not change
    index % 2 === 1 ? <code key={index}>{part}</code> : part,
  );
}

/** Paragraphs. */
export function Prose({ text }: { readonly text: string }) {
  return (
    <div className="prose">
      {text.split("\n\n").map((paragraph) => (
        <p key={paragraph}>{inlineCode(paragraph)}</p>
      ))}
    </div>
  );
}
