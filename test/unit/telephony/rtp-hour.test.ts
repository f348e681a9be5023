/** An hour of one RTP call on a clock that is turned by hand: speech, silence, interruptions, and a process that is held up. */
import { describe, expect, it } from "vitest";
import { RtpPacketizer, rtpPayload } from "../../../src/audio/containers/rtp.ts";
import { parseRtp, type RtpPacket, RtpSequence } from "../../../src/audio/containers/rtp-reader.ts";
import { Pacer } from "../../../src/delivery/pacer.ts";
import { PacedPlayer } from "../../../src/telephony/paced-player.ts";
import { HeldClock } from "./held-clock.ts";

const FRAME_MS = 20;
const FRAME_SAMPLES = 160;
const HOUR_MS = 3_600_000;
const SILENT = 0xff;
const FIRST_SEQUENCE = 65_530;
/** Wraps a minute after the beginning. */
const FIRST_TIMESTAMP = 2 ** 32 - 60_000 * 8;

interface Sent {
  readonly atMs: number;
  readonly packet: RtpPacket;
}

function call() {
  const clock = new HeldClock();
  const pacer = new Pacer(clock);
  const sent: Sent[] = [];
  let skipped = 0;
  const packets = new RtpPacketizer({
    ...rtpPayload("ulaw_8000"),
    samplesPerFrame: FRAME_SAMPLES,
    ssrc: 0xfeedf00d,
    sequence: FIRST_SEQUENCE,
    timestamp: FIRST_TIMESTAMP,
  });
  const player = new PacedPlayer({
    frameMs: FRAME_MS,
    silence: Uint8Array.of(SILENT),
    register: (paced) => pacer.register(paced, "first"),
    nowMs: () => clock.nowMs(),
    send: ({ bytes, isTalkspurtStart }) => {
      const packet = parseRtp(packets.wrap(bytes, isTalkspurtStart));
      if (packet === null) throw new Error("What was sent is no RTP");
      sent.push({ atMs: clock.nowMs(), packet });
    },
    onSkipped: (frames) => {
      skipped += frames;
      packets.skip(frames);
    },
    onPlayed: () => undefined,
  });
  return { clock, player, sent, skipped: () => skipped };
}

/** Seven seconds of speech sent ahead in batches, three of none; every sixth turn is cut short. */
function converse(
  { clock, player }: Pick<ReturnType<typeof call>, "clock" | "player">,
  hold: (turn: number) => number,
): void {
  const endMs = clock.nowMs() + HOUR_MS;
  player.start();
  for (let turn = 0; clock.nowMs() < endMs; turn += 1) {
    const turnEndMs = Math.min(endMs, 1000 + (turn + 1) * 10_000);
    for (let batch = 0; batch < 70; batch += 1) {
      player.push(Array.from({ length: 5 }, (_, at) => Uint8Array.of((turn + batch + at) % 200)));
      player.mark(`t${turn}b${batch}`);
      clock.advance(batch === 0 ? 20 : 100);
      if (turn % 6 === 5 && batch === 40) {
        player.clear();
        break;
      }
    }
    const heldMs = hold(turn);
    if (heldMs > 0) clock.holdUntil(clock.nowMs() + heldMs);
    clock.advance(turnEndMs - clock.nowMs());
  }
}

const apart = (sent: readonly Sent[], read: (one: Sent) => number): number[] =>
  sent.slice(1).map((one, index) => read(one) - read(sent[index] ?? one));

describe("an hour of RTP", () => {
  it("has 180,000 packets without an error of sequence, time or marker", () => {
    const { clock, player, sent, skipped } = call();
    converse({ clock, player }, () => 0);
    expect([sent.length, skipped()]).toEqual([HOUR_MS / FRAME_MS, 0]);
    const reader = new RtpSequence();
    const verdicts = sent.map(({ packet }) => reader.note(packet));
    expect(verdicts.filter((verdict) => verdict.kind !== "fresh" || verdict.missing > 0)).toEqual([]);
    for (const [index, { atMs, packet }] of sent.entries()) {
      const expected = {
        sequence: (FIRST_SEQUENCE + index) & 0xffff,
        timestamp: (FIRST_TIMESTAMP + index * FRAME_SAMPLES) % 2 ** 32,
        atMs: 1000 + (index + 1) * FRAME_MS,
        hasMarker: begins(sent, index),
      };
      const { sequence, timestamp, hasMarker } = packet;
      // A matcher for each of so many would take longer than all the rest.
      if (
        sequence !== expected.sequence ||
        timestamp !== expected.timestamp ||
        atMs !== expected.atMs ||
        hasMarker !== expected.hasMarker
      ) {
        expect({ index, sequence, timestamp, atMs, hasMarker }).toEqual({ index, ...expected });
      }
    }
    expect(sent.filter(({ packet }) => packet.hasMarker)).toHaveLength(HOUR_MS / 10_000);
  });

  it("held up now and then it keeps its numbers and its beat, leaves out what is too late, and never bursts", () => {
    const { clock, player, sent, skipped } = call();
    // Less than a frame, some frames, more than is made up for.
    const holds = [0, 15, 0, 55, 0, 130, 0, 1000];
    converse({ clock, player }, (turn) => holds[turn % holds.length] ?? 0);
    const reader = new RtpSequence();
    const verdicts = sent.map(({ packet }) => reader.note(packet));
    expect(verdicts.every((verdict) => verdict.kind === "fresh" && verdict.missing === 0)).toBe(true);
    // Every beat of the hour was sent or left out; the timestamps count both.
    expect(skipped()).toBeGreaterThan(1000);
    expect(sent.length + skipped()).toBe(HOUR_MS / FRAME_MS);
    const steps = apart(sent, ({ packet }) => packet.timestamp).map((step) => (step >>> 0) / FRAME_SAMPLES);
    expect(steps.every((step) => Number.isInteger(step) && step >= 1)).toBe(true);
    expect(steps.reduce((sum, step) => sum + step - 1, 0)).toBe(skipped());
    expect(apart(sent, ({ atMs }) => atMs).filter((ms) => ms < FRAME_MS / 2)).toEqual([]);
    // No drift: the last beat is where it would be without any of it.
    expect(sent.at(-1)?.atMs).toBe(1000 + HOUR_MS);
  });
});

/** Whether speech begins with this packet: the one before was silence, or there was none. */
function begins(sent: readonly Sent[], index: number): boolean {
  const isSilent = (at: number): boolean => (sent[at]?.packet.payload[0] ?? SILENT) === SILENT;
  return !isSilent(index) && isSilent(index - 1);
}
