/** What sums of usage are told apart by, besides the day. */
export const USAGE_KEYS = ["deployment", "endpoint", "token"] as const;

export type UsageBy = (typeof USAGE_KEYS)[number];
