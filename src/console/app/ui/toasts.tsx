/** Short messages about what was done, which go by themselves and are read out. */
import { createContext, type ReactNode, useCallback, useContext, useState } from "react";

/** How long a message stands at the edge of a page. */
const SHOWN_MS = 5_000;
/** Messages at the edge of a page at a time. */
const MAX_TOASTS = 3;

interface Toast {
  readonly id: number;
  readonly text: string;
}

const Context = createContext<(text: string) => void>(() => {});

/** Returns a function that shows a message. */
export const useToast = () => useContext(Context);

export function Toasts({ children }: { readonly children: ReactNode }) {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  const show = useCallback((text: string) => {
    const id = performance.now();
    setToasts((before) => [...before.slice(1 - MAX_TOASTS), { id, text }]);
    setTimeout(() => setToasts((before) => before.filter((one) => one.id !== id)), SHOWN_MS);
  }, []);
  return (
    <Context value={show}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {toasts.map(({ id, text }) => (
          <p key={id}>{text}</p>
        ))}
      </div>
    </Context>
  );
}
