/** All faults, in the order of the table. */
import { ANSWER_FAULTS } from "./answer-faults.ts";
import { MACHINE_FAULTS } from "./machine-faults.ts";
import { PROCESS_FAULTS } from "./process-faults.ts";
import type { Fault } from "./scene.ts";

export const FAULTS: readonly Fault[] = [...ANSWER_FAULTS, ...MACHINE_FAULTS, ...PROCESS_FAULTS];
