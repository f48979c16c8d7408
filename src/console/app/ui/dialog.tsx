/**
 * A modal dialog: the browser's own, which holds the focus, closes by Escape and returns the
 * focus. It begins at the element with `data-autofocus`, else at the first field, else at itself, with the keys that
 * were pressed while it was being loaded.
 */
import { type ReactNode, useEffect, useId, useRef } from "react";
import { Icon } from "./icon.tsx";
import { typeKept } from "./typed-ahead.ts";
import "./dialog.css";

interface Props {
  readonly className?: string;
  readonly children: ReactNode;
  onClose(): void;
}

/** A dialog has a title that is seen, or a label that is read out. */
type DialogProps = Props &
  (
    | { readonly title: string; readonly label?: never }
    | { readonly label: string; readonly title?: never }
  );

export function Dialog({ title, label, className = "", children, onClose }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    const first = ["[data-autofocus]", ":is(input, select, textarea)"]
      .map((one) => dialog?.querySelector<HTMLElement>(one))
      .find((one) => one);
    (first ?? dialog)?.focus();
    // Not within the effect, where React would put fields back to what they were.
    queueMicrotask(() => dialog && typeKept(dialog));
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) {
        before.focus();
      }
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it by keyboard
    <dialog
      ref={ref}
      className={`dialog ${className}`}
      tabIndex={-1}
      aria-label={label}
      aria-labelledby={title === undefined ? undefined : heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      <div className="dialog-content">
        {title !== undefined && (
          <header className="dialog-header">
            <h2 id={heading}>{title}</h2>
            <button type="button" className="icon-button" aria-label="Close" onClick={onClose}>
              <Icon path="M4 4l8 8M12 4l-8 8" />
            </button>
          </header>
        )}
        {children}
      </div>
    </dialog>
  );
}
