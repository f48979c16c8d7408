/** How far a task is, as its function reports it. */
import type { TaskProgressJson } from "../../../../../gen/tessera/v1/task_pb.js";
import "./progress.css";

export function Progress({ progress }: { readonly progress: TaskProgressJson | undefined }) {
  const { message, fraction } = progress ?? {};
  return (
    <section aria-label="Progress" className="progress">
      <progress
        aria-label={message || "Progress"}
        {...(typeof fraction === "number" && { value: fraction })}
      />
      <span className="secondary">
        {typeof fraction === "number" && `${Math.round(fraction * 100)} % `}
        {message}
      </span>
    </section>
  );
}
