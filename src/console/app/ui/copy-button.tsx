/** Buttons that put a text on the clipboard, and say so. */
import { useEffect, useState } from "react";
import { Button } from "./button.tsx";
import { Icon } from "./icon.tsx";

/** How long the button says that it copied. */
const SAID_MS = 2_000;

interface CopyButtonProps {
  readonly text: string;
  readonly label?: string;
  /** What it is, for who does not see the text beside it. */
  readonly what: string;
  /** Default: a button without an outline. */
  readonly isOutlined?: boolean;
  /** Whether it shows an icon in place of its label. */
  readonly isIcon?: boolean;
}

export function CopyButton(props: CopyButtonProps) {
  const { text, label = "Copy", what, isOutlined = false, isIcon = false } = props;
  const { copied, copy } = useCopy(text);
  const said = SAID[copied] ?? label;
  return (
    <Button
      {...(isIcon ? { kind: "icon", title: said } : !isOutlined && { kind: "quiet" })}
      onClick={({ currentTarget }) => void copy(currentTarget)}
      aria-label={`${said}: ${what}`}
    >
      {isIcon ? <Icon path={copied === "yes" ? DONE : COPY} /> : said}
    </Button>
  );
}

const COPY = "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3";
const DONE = "M3 8.5 6.5 12 13 4.5";

interface CopyChipProps {
  readonly text: string;
  /** What is shown of it. Default: all. */
  readonly shown?: string;
  readonly what: string;
}

/** A short text, such as an id, that is copied where it is clicked. */
export function CopyChip({ text, shown = text, what }: CopyChipProps) {
  const { copied, copy } = useCopy(text);
  return (
    <button
      type="button"
      className="chip copied-from"
      title={`Copy ${what}: ${text}`}
      onClick={({ currentTarget }) => void copy(currentTarget)}
    >
      <code>{shown}</code>
      <span className="hidden">Copy {what}</span>
      <span className="chip-said" role="status">
        {SAID[copied]}
      </span>
    </button>
  );
}

type Copied = "no" | "yes" | "failed";

const SAID: Partial<Record<Copied, string>> = { yes: "Copied", failed: "Press Ctrl+C" };

function useCopy(text: string) {
  const [copied, setCopied] = useState<Copied>("no");
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
      if (copySelected(text, button)) {
        setCopied("yes");
        return;
      }
      const shown = button.closest(".copied-from")?.querySelector("code, .result-text");
      if (shown) {
        getSelection()?.selectAllChildren(shown);
      }
      setCopied("failed");
    }
  };
  return { copied, copy };
}

/** The way of pages without a secure context, which have no clipboard: a field with the text. */
function copySelected(text: string, button: Element): boolean {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden";
  // Beside the button: an open dialog takes the focus from all that is outside of it.
  button.after(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  if (focused instanceof HTMLElement) {
    focused.focus();
  }
  return isCopied;
}
