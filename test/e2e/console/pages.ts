/** Every page of the console, for tests that look at all of them. Who adds a page adds it here. */
import type { ConsoleBrowser } from "./console-browser.ts";
import { BACKWARDS, type GalleryIds, NAME, WEBHOOK } from "./gallery.ts";

export interface ListedPage {
  readonly path: string | ((ids: GalleryIds) => string);
  readonly heading: string | RegExp;
  /** Only admins see it. Default: members too. */
  readonly isForAdmins?: boolean;
  /** Only operators see it, of whom the admin is one. */
  readonly isForOperators?: boolean;
  /** People of other organizations see it as well. Default: they see nothing of acme. */
  readonly isPublic?: boolean;
  /** Waits for what the page shows, or brings it to a state such as an open dialog. */
  readonly open?: (person: ConsoleBrowser) => Promise<unknown>;
}

const deployment =
  (page = "") =>
  (ids: GalleryIds): string =>
    `/o/acme/deployments/${ids.deployment}${page}`;
const task =
  (endpoint: keyof GalleryIds["tasks"]) =>
  (ids: GalleryIds): string =>
    deployment(`/tasks/${ids.tasks[endpoint]}`)(ids);

const text = (wanted: string) => (person: ConsoleBrowser) =>
  person.page.getByRole("main").getByText(wanted).first().waitFor();
const press = (name: string) => (person: ConsoleBrowser) => person.press(name);

export const PAGES: readonly ListedPage[] = [
  { path: "/o/acme", heading: NAME, open: text("Last hour") },
  { path: "/o/acme/deployments", heading: "Deployments" },
  { path: deployment(), heading: /^h{63}$/ },
  { path: "/o/acme/deployments/broken", heading: "broken", open: text(BACKWARDS) },
  { path: deployment("/tasks"), heading: /: tasks$/ },
  { path: task("fail"), heading: "Task of fail", open: text(BACKWARDS) },
  { path: task("finish"), heading: "Task of finish", open: text("complete") },
  { path: task("linger"), heading: "Task of linger", open: text("50 %") },
  { path: task("page"), heading: "Task of page", open: text("text/html") },
  {
    path: deployment("/playground"),
    heading: /: playground$/,
    open: text(BACKWARDS),
  },
  {
    path: deployment("/playground"),
    heading: /: playground$/,
    open: async ({ page }) => {
      await page.getByRole("link", { name: /^finish/ }).click();
      await page.getByRole("button", { name: "Submit", exact: true }).click();
      await page.locator(".timeline .now", { hasText: "success" }).waitFor();
      await page.locator(".log").getByText(BACKWARDS).first().waitFor();
      await page.getByRole("link", { name: "Open task" }).waitFor();
    },
  },
  { path: deployment("/revisions"), heading: /: revisions$/ },
  { path: deployment("/metrics"), heading: /: metrics$/ },
  { path: deployment("/log"), heading: /: log$/, open: text(BACKWARDS) },
  { path: deployment("/settings"), heading: /: settings$/, open: text("Who may call it") },
  { path: deployment("/schedules"), heading: /: schedules$/, open: text("finish") },
  {
    path: deployment("/schedules"),
    heading: /: schedules$/,
    open: press("Create schedule"),
  },
  { path: deployment("/webhooks"), heading: /: webhooks$/, open: text("Create webhook") },
  { path: deployment(`/webhooks/${WEBHOOK}`), heading: WEBHOOK, open: text("Waiting deliveries") },
  { path: "/o/acme/tasks", heading: "Tasks", open: text("linger") },
  { path: "/o/acme/tasks?error=none+has+this", heading: "Tasks", open: text("No tasks match") },
  { path: "/o/acme/models", heading: "Models", open: text("reader@1") },
  { path: "/o/acme/machines", heading: "Machines", open: text("on 1 machine") },
  { path: "/o/acme/alerts", heading: "Alerts", open: text("Create rule") },
  { path: "/o/acme/usage", heading: "Usage", open: text("Run time per day") },
  { path: "/o/acme/tokens", heading: "API tokens", open: text(BACKWARDS) },
  { path: "/o/acme/tokens", heading: "API tokens", open: press("Create token") },
  { path: "/o/acme/members", heading: "Members", open: text(BACKWARDS) },
  { path: "/o/acme/audit", heading: "Audit log", isForAdmins: true, open: text(BACKWARDS) },
  { path: "/o/acme/operator", heading: "Platform", isForOperators: true, open: text("rivals") },
  { path: "/o/acme/nothing", heading: "There is no such page" },
  {
    path: "/o/acme/deployments",
    heading: "Deployments",
    open: async ({ page }) => {
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox", { name: /^Search/ }).fill("h");
    },
  },
  {
    path: "/o/acme/deployments",
    heading: "Deployments",
    open: ({ page }) => page.keyboard.press("?"),
  },
  { path: "/o/acme/account", heading: "Your account" },
  { path: "/o/acme/reference", heading: "API reference" },
  { path: "/account", heading: "Your account", isPublic: true },
  { path: "/reference#TaskService.GetTask", heading: "API reference", isPublic: true },
  {
    path: ({ userCode }) => `/device?user_code=${userCode}`,
    heading: "Sign in on another machine",
    isPublic: true,
  },
];
