/** The result of a task that succeeded. */
import { useQuery } from "@tanstack/react-query";
import { messageOf } from "../../api/errors.ts";
import { resultOf } from "../../api/results.ts";
import type { TaskName } from "../../api/tasks.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Content, sizeOf } from "./content.tsx";

export function Result({ name, endpoint }: { readonly name: TaskName; readonly endpoint: string }) {
  const { data, error } = useQuery(resultOf(name, endpoint));
  return (
    <section aria-labelledby="result">
      <h2 id="result">Result</h2>
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {data === undefined && !error && <Loading />}
      {data?.blob && (
        <Content blob={data.blob} label="Result" filename={data.filename || name.taskId} />
      )}
      {data && !data.blob && (
        <Notice>{`It has ${sizeOf(data.bytes)}, too much for a page: fetch it with a program.`}</Notice>
      )}
    </section>
  );
}
