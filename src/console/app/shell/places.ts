/** The pages of an organization, as the navigation, the palette and the shortcuts name them. */
export interface ConsolePlace {
  readonly label: string;
  readonly to: (typeof PATHS)[number];
  /** The shortcut, after `g`. */
  readonly key: string;
  readonly icon: string;
  /** Who sees it. Default: everybody. */
  readonly audience?: "admins" | "operators";
}

const PATHS = [
  "/o/$organization",
  "/o/$organization/deployments",
  "/o/$organization/tasks",
  "/o/$organization/models",
  "/o/$organization/machines",
  "/o/$organization/alerts",
  "/o/$organization/usage",
  "/o/$organization/tokens",
  "/o/$organization/members",
  "/o/$organization/audit",
  "/o/$organization/operator",
] as const;

/** Outlines of 16 by 16, drawn with a stroke of 1.5. */
export const PLACES: readonly ConsolePlace[] = [
  {
    label: "Overview",
    to: "/o/$organization",
    key: "o",
    icon: "M2.5 2.5h4.5v4.5h-4.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5h-4.5zM9 9h4.5v4.5H9z",
  },
  {
    label: "Deployments",
    to: "/o/$organization/deployments",
    key: "d",
    icon: "M8 1.8l5.5 3v6.4L8 14.2l-5.5-3V4.8zM2.5 4.8L8 7.9l5.5-3.1M8 7.9v6.3",
  },
  {
    label: "Tasks",
    to: "/o/$organization/tasks",
    key: "t",
    icon: "M2.5 4l1.2 1.2L6 3M2.5 8.2l1.2 1.2L6 7.2M2.5 12.4l1.2 1.2L6 11.4M8.5 4h5M8.5 8.2h5M8.5 12.4h5",
  },
  {
    label: "Models",
    to: "/o/$organization/models",
    key: "w",
    icon: "M8 1.8c3 0 5.5.9 5.5 2.2S11 6.2 8 6.2 2.5 5.3 2.5 4 5 1.8 8 1.8zM2.5 4v8c0 1.3 2.5 2.2 5.5 2.2s5.5-.9 5.5-2.2V4M2.5 8c0 1.3 2.5 2.2 5.5 2.2s5.5-.9 5.5-2.2",
  },
  {
    label: "Machines",
    to: "/o/$organization/machines",
    key: "h",
    icon: "M2.5 3h11v7.5h-11zM5.5 13.5h5M8 10.5v3M5 5.5h3",
  },
  {
    label: "Alerts",
    to: "/o/$organization/alerts",
    key: "e",
    icon: "M8 1.8c-2.6 0-4.3 1.9-4.3 4.4 0 3.3-1.4 4.6-1.4 5.4h11.4c0-.8-1.4-2.1-1.4-5.4 0-2.5-1.7-4.4-4.3-4.4zM6.4 13.6c.3.5.9.8 1.6.8s1.3-.3 1.6-.8",
  },
  {
    label: "Usage",
    to: "/o/$organization/usage",
    key: "u",
    icon: "M2.5 2v12h11.5M5.5 11.5v-3M8.5 11.5v-6M11.5 11.5v-4.5",
  },
  {
    label: "API tokens",
    to: "/o/$organization/tokens",
    key: "k",
    icon: "M10.2 9.3a3.5 3.5 0 1 0-3.4-2.6L2 11.5V14h2.5v-1.6H6v-1.6h1.6l.9-.9c.5.3 1.1.4 1.7.4zM11 5h.01",
  },
  {
    label: "Members",
    to: "/o/$organization/members",
    key: "m",
    icon: "M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M11 3a2.3 2.3 0 0 1 0 4.4M12 9.8c1.5.5 2.5 1.8 2.5 3.7",
  },
  {
    label: "Audit log",
    to: "/o/$organization/audit",
    key: "a",
    icon: "M3.5 1.5h9v13h-9zM6 5h4M6 8h4M6 11h2",
    audience: "admins",
  },
  {
    label: "Platform",
    to: "/o/$organization/operator",
    key: "p",
    icon: "M2.5 2.5h11v4h-11zM2.5 9.5h11v4h-11zM5 4.5h.01M5 11.5h.01M8 4.5h3M8 11.5h3",
    audience: "operators",
  },
];

/** The pages that somebody sees. */
export const placesFor = (who: {
  readonly isAdmin: boolean;
  readonly isOperator: boolean;
}): readonly ConsolePlace[] => {
  const may = { admins: who.isAdmin, operators: who.isOperator };
  return PLACES.filter(({ audience }) => audience === undefined || may[audience]);
};
