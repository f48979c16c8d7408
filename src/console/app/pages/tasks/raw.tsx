/** A task as the API tells it, in a dialog that `r` opens. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { messageOf } from "../../api/errors.ts";
import { getJson } from "../../api/get-json.ts";
import { fullName, type TaskName } from "../../api/tasks.ts";
import { useShortcut } from "../../shell/keys.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { BEARER } from "../../ui/shell-command.ts";

export function Raw({ name }: { readonly name: TaskName }) {
  const [isOpen, setOpen] = useState(false);
  useShortcut("r", () => setOpen(true));
  return (
    <>
      <Button onClick={() => setOpen(true)} aria-keyshortcuts="r">
        View JSON
      </Button>
      {isOpen && <RawDialog name={name} onClose={() => setOpen(false)} />}
    </>
  );
}

function RawDialog({ name, onClose }: { readonly name: TaskName; onClose(): void }) {
  const path = `/api/v1/tasks/${name.taskId}?${new URLSearchParams({ deployment: fullName(name) })}`;
  const { data, error } = useQuery({
    queryKey: ["raw-task", fullName(name), name.taskId],
    queryFn: ({ signal }) => getJson(path, signal),
    gcTime: 0,
  });
  const text = JSON.stringify(data, undefined, 2) ?? "";
  return (
    <Dialog title="The task as JSON" className="wide" onClose={onClose}>
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {data === undefined && !error && <Loading />}
      {data !== undefined && (
        <div className="content copied-from">
          <div className="result-line">
            <CopyButton text={text} what="the JSON of the task" />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
          <section className="result-text" tabIndex={0} aria-label="JSON of the task">
            {text}
          </section>
        </div>
      )}
      <Command text={`curl '${location.origin}${path}' ${BEARER}`} label="Copy as curl" />
    </Dialog>
  );
}
