/** A line to copy: a command, an address, the value of a token. */
import { useEffect, useState } from "react";
import { Button } from "./button.tsx";

/** How long the button says that it copied. */
const SAID_MS = 2_000;

export function Command({
  text,
  label = "Copy",
}: {
  readonly text: string;
  readonly label?: string;
}) {
  const [copied, setCopied] = useState<"no" | "yes" | "failed">("no");
  useEffect(() => {
    if (copied !== "no") {
      const timer = setTimeout(() => setCopied("no"), SAID_MS);
      return () => clearTimeout(timer);
    }
  }, [copied]);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied("yes"),
      () => setCopied("failed"),
    );
  return (
    <div className="command">
      <code>{text}</code>
      <Button
        kind="quiet"
        onClick={() => void copy()}
        aria-label={`${label}: ${text.slice(0, 60)}`}
      >
        {copied === "yes" ? "Copied" : copied === "failed" ? "Select it to copy" : label}
      </Button>
    </div>
  );
}
