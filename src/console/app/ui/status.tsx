/** A state with its colour and its word: the colour alone says nothing. */
export type Tone = "good" | "working" | "warning" | "bad" | "idle" | "done";

export function Status({ tone, children }: { readonly tone: Tone; readonly children: string }) {
  return <span className={`status ${tone}`}>{children}</span>;
}
