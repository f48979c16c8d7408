/** The words of the command line and of `tessera.yaml` for what a schedule may say. */
import { ScheduleCatchUp, ScheduleOverlap } from "../../client/index.ts";

export const OVERLAPS = {
  skip: ScheduleOverlap.SKIP,
  queue: ScheduleOverlap.QUEUE,
  replace: ScheduleOverlap.REPLACE,
} as const;

export const CATCH_UPS = {
  none: ScheduleCatchUp.NONE,
  one: ScheduleCatchUp.ONE,
  all: ScheduleCatchUp.ALL,
} as const;
