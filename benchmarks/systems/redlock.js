// redlock in Node: acquire and release, FLIGHT at once on one connection, each task with a lock of
// its own.
const Redis = require('ioredis');
const Redlock = require('redlock');

const now = () => Number(process.hrtime.bigint()) / 1e9;

async function main() {
  const [count, flight] = [Number(process.argv[3]), Number(process.env.BENCH_FLIGHT)];
  const store = new URL(process.env.BENCH_STORE);
  const client = new (Redis.default || Redis)({ host: store.hostname, port: Number(store.port) });
  const redlock = new Redlock([client], { retryCount: 0 });
  let left = count;
  const lane = async (_, number) => {
    while (left-- > 0) {
      const lock = await redlock.lock(`lock:${number}`, 10000);
      await lock.unlock();
    }
  };
  await (await redlock.lock('warm-up', 10000)).unlock();
  const start = now();
  await Promise.all(Array.from({ length: flight }, lane));
  console.log(JSON.stringify({ value: count / (now() - start) }));
  process.exit(0);
}

main().catch((error) => {
  console.error(String(error));
  process.exit(1);
});
