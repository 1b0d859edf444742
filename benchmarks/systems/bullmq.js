// BullMQ on Redis, in Node: 200 jobs at once, finished jobs removed, addBulk.
// The verbs are those of jobs.py.
const fs = require('fs');
const path = require('path');
const { Queue, Worker } = require('bullmq');

const store = new URL(process.env.BENCH_STORE);
const connection = { host: store.hostname, port: Number(store.port), maxRetriesPerRequest: null };
const folder = process.env.BENCH_FOLDER;
const latencies = path.join(folder, 'latencies');
const executed = path.join(folder, 'executed');
const SLOTS = 8;
const WARM_UP = 3;
const BULK = 500;

// The clock of Python's time.perf_counter().
const now = () => Number(process.hrtime.bigint()) / 1e9;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const answer = (figures) => console.log(JSON.stringify(figures));
const rate = (count, start) => answer({ value: count / (now() - start) });

function total() {
  const numbers = fs.readFileSync(executed);
  const slots = Array.from({ length: SLOTS }, (_, slot) => numbers.readBigUInt64LE(8 * slot));
  return slots.reduce((sum, executed) => sum + Number(executed), 0);
}

const options = { removeOnComplete: true };

async function submit(queue, count) {
  const start = now();
  for (let sent = 0; sent < count; sent += BULK) {
    const length = Math.min(BULK, count - sent);
    await queue.addBulk(Array.from({ length }, () => ({ name: 'noop', data: {}, opts: options })));
  }
  rate(count, start);
}

async function single(queue, count) {
  const start = now();
  for (let sent = 0; sent < count; sent++) await queue.add('noop', {}, options);
  rate(count, start);
}

async function pickup(queue, count) {
  for (let number = 1; number <= WARM_UP + count; number++) {
    await sleep(50 + Math.random() * 50);
    await queue.add('noop', { submitted: now() }, options);
    for (let waited = 0; total() < number; waited += 2) {
      if (waited > 40000) throw new Error(`job ${number} did not start`);
      await sleep(2);
    }
  }
  const lines = fs.readFileSync(latencies, 'latin1').trim().split('\n').slice(WARM_UP);
  const seconds = lines.map(Number).sort((a, b) => a - b);
  const index = (share) => Math.min(seconds.length - 1, Math.floor(share * seconds.length));
  const percentile = (share) => 1e3 * seconds[index(share)];
  answer({ value: percentile(0.5), p99: percentile(0.99) });
}

function work() {
  const file = fs.openSync(executed, 'r+');
  const number = Buffer.alloc(8);
  const offset = 8 * Number(process.env.BENCH_SLOT || 0);
  let mine = 0n;
  const job = async ({ data }) => {
    if (data.submitted) fs.appendFileSync(latencies, `${(now() - data.submitted).toFixed(9)}\n`);
    number.writeBigUInt64LE(++mine);
    fs.writeSync(file, number, 0, 8, offset);
  };
  new Worker('benchmark', job, { connection, concurrency: 200 });
}

async function main() {
  const [verb, count] = [process.argv[2], Number(process.argv[3])];
  if (verb === 'work') return work();
  const queue = new Queue('benchmark', { connection });
  await queue.waitUntilReady();
  await { submit, single, pickup }[verb](queue, count);
  process.exit(0);
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
