import java.util.*;
import java.util.concurrent.*;

public class Work {
    static long mix(long h, long v) { h = (h ^ v) * 0x9e3779b97f4a7c15L; return h ^ (h >>> 29); }
    public static void main(String[] a) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Long>> results = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            final int id = t;
            results.add(pool.submit(() -> { long h = id; for (int i = 0; i < 400000; i++) h = mix(h, i); return h; }));
        }
        for (Future<Long> r : results) System.out.println(Long.toHexString(r.get()));
        pool.shutdown();
        Map<String, Integer> words = new TreeMap<>();
        for (int i = 0; i < 50000; i++) words.merge("w" + i * 31 % 997, 1, Integer::sum);
        System.out.println(words.size() + " " + words.get("w5"));
        int caught = 0;
        for (int i = 0; i < 20000; i++) try { ((String) (i < 0 ? "" : null)).length(); } catch (NullPointerException e) { caught++; }
        byte[][] keep = new byte[50][];
        for (int i = 0; i < 3000; i++) keep[i % 50] = new byte[20000];
        System.gc();
        System.out.println(caught + " " + keep.length);
        System.exit(5);
    }
}
