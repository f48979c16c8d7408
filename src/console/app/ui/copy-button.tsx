/** A button that puts a text on the clipboard, and says so. */
import { useEffect, useState } from "react";
import { Button } from "./button.tsx";

/** How long the button says that it copied. */
const SAID_MS = 2_000;

interface CopyButtonProps {
  readonly text: string;
  readonly label?: string;
  /** What it is, for who does not see the text beside it. */
  readonly what: string;
}

export function CopyButton({ text, label = "Copy", what }: CopyButtonProps) {
  const [copied, setCopied] = useState<"no" | "yes" | "failed">("no");
  useEffect(() => {
    if (copied !== "no") {
      const timer = setTimeout(() => setCopied("no"), SAID_MS);
      return () => clearTimeout(timer);
    }
  }, [copied]);
  const copy = async (button: Element): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied("yes");
    } catch {
      // Without a secure context there is no clipboard: the text beside the button is selected.
      const shown = button.closest(".copied-from")?.querySelector("code, .result-text");
      if (shown) {
        getSelection()?.selectAllChildren(shown);
      }
      setCopied("failed");
    }
  };
  return (
    <Button
      kind="quiet"
      onClick={({ currentTarget }) => void copy(currentTarget)}
      aria-label={`${label}: ${what}`}
    >
      {copied === "yes" ? "Copied" : copied === "failed" ? "Press Ctrl+C" : label}
    </Button>
  );
}
