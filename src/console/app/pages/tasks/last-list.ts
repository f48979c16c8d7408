/** The list of tasks that was looked at last in this tab: a task leads back to it, with its filter. */
import { readSearch, type TaskSearch } from "./search.ts";

const LAST_LIST = "tessera.tasks";

interface TaskListPlace {
  readonly organization: string;
  /** Of the list of one deployment; undefined for that of all. */
  readonly deployment?: string | undefined;
  readonly search: TaskSearch;
}

export function rememberList(list: TaskListPlace): void {
  sessionStorage.setItem(LAST_LIST, JSON.stringify(list));
}

/** The list that has this task, as somebody left it. Default: that of its deployment. */
export function lastList(organization: string, deployment: string): TaskListPlace {
  const { organization: of, deployment: from = deployment, search } = read();
  return of === organization && from === deployment
    ? { ...read(), organization, search: readSearch({ ...search }) }
    : { organization, deployment, search: {} };
}

function read(): Partial<TaskListPlace> {
  try {
    return JSON.parse(sessionStorage.getItem(LAST_LIST) ?? "{}");
  } catch {
    // Written by another version.
    return {};
  }
}
