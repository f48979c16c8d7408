/** A message in the page: an error of a form, a warning, a success. */
import type { ReactNode } from "react";

interface NoticeProps {
  readonly kind?: "error" | "warning" | "success";
  readonly children: ReactNode;
}

export function Notice({ kind, children }: NoticeProps) {
  return (
    <div className={`notice ${kind ?? ""}`} role={kind === "error" ? "alert" : "status"}>
      {children}
    </div>
  );
}
