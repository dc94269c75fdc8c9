/* The branch and bound of search.py, and the matching of assignment.py, for tables of some thousand pairs.
 *
 * Every number is computed by the operations of the Python search, in their order: sums as numpy adds them, ties
 * of a matching broken as scipy breaks them, logarithms from the same library. So a search takes the same steps
 * to the same answer, and what is proven there is proven here. Tables are rows of K pairs, one row for each of
 * the M blocks. Nothing is kept between calls, and nothing is shared: threads may search at the same time.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t count;
enum { LANES = 4, SERIES = 13, NEWTON_STEPS = 60, SHRINK_STEPS = 6, NUM_PROBES = 3, EXTRA = 16, STEPS = 2, GUESSES = 4 };
enum { RECALLED = 16, MOST_ROWS = 64, MOST_UNSURE = 4, MOST_PASSES = 4 };
typedef double lanes __attribute__((vector_size(8 * LANES), may_alias));
typedef int64_t marks __attribute__((vector_size(8 * LANES), may_alias));
enum { OPTIMAL = 0, GAP_REACHED = 1, LIMIT = 2, FAILED = -1 }; /* FAILED: for want of memory */

static const double LARGEST_SNR = 1e300, ROUNDING = 1e-13, WORTHWHILE = 0.15, FEW_NATS = 1e-3, LEVEL_SNR = 1e-60, MARGIN = 1e-9;

/* What Python hands over; search.py and pairs.py say what each is. */
typedef struct {
    count blocks, width, devices, barred;          /* M, K, devices that the columns name, blocks kept empty */
    const double *contribution;                    /* u, K of them, or M x K where is_shared is 0 */
    const double *unit_cost, *snr_cap;             /* M x K */
    const int64_t *device;                         /* M x K, from 0 to devices - 1; of own columns alone */
    const double *favourite, *worth, *circuit_cost; /* M x K, or none where nobody may send faster */
    count is_shared, has_one_circuit, has_kinks, max_matchings;
    double delay_weight, nat_delay_s, floor, largest_contribution, least_favourite, relative_gap, compute_cost;
} problem;

/* What comes back. */
typedef struct {
    double value, snr, upper_bound;
    count matchings, steps, traced, rematched;
} answer;

typedef struct { double contribution, unit_cost, factor, smallest_cap, snr_cap, best_value; } matching;
typedef struct {
    double low, high, smallest_cap, lines, upper_bound, best_snr;
    count at_low, at_high, number;
    int is_point;
} node;

typedef struct {
    const problem *p;
    /* the lines that bound the worths: the table itself, or its tangent at an SNR */
    double lines_snr, *line_contribution, *line_cost;
    /* one matching at a time; the losses' rows are filled up with 0 to whole vectors */
    count stride;
    double *loss, *some, *cost, *u, *v, *distance;
    int64_t *from, *open, *row_of, *column_of, *order, *place, *visited, *kept, *local;
    /* one matching from an earlier one */
    double *swap, *moved, *own, *free_loss, *passed_on;
    int64_t *next, *seen, *held;
    count num_unsure, num_rematched; /* times in a row that it was not sure; times that it was */
    /* all matchings, and their columns, M each; -1 for an empty block */
    matching *matchings;
    int32_t *columns;
    count num_matchings, room_matchings, num_steps;
    /* open nodes, as a heap */
    node *heap;
    count num_open, room_open, num_nodes;
    double closed; /* the largest bound of a closed node */
    /* sums over the pairs of a matching, by favourite SNR */
    double *sum_favourite, *sum_contribution, *sum_cost, *sum_worth, *sum_circuit;
    count num_sums;
    /* incumbent */
    count best;
    double snr, value, *trace;
    count num_traced, room_trace;
    int has_failed;
} search;

static inline double least(double one, double other) { return other < one ? other : one; }
static inline count whole(count n) { return (n + LANES - 1) / LANES * LANES; } /* vectors */
static inline double most(double one, double other) { return other > one ? other : one; }

/* -- power.py: closed forms ------------------------------------------------------------------------------ */

static double series_at(double y) { /* (y - 1) e^y + 1 over y^2 */
    static const double terms[SERIES] = { /* (k - 1) / k!, k from 14 to 2 */
        13 / 87178291200.0, 12 / 6227020800.0, 11 / 479001600.0, 10 / 39916800.0, 9 / 3628800.0, 8 / 362880.0,
        7 / 40320.0, 6 / 5040.0, 5 / 720.0, 4 / 120.0, 3 / 24.0, 2 / 6.0, 1 / 2.0};
    double value = 0.0;
    for (int k = 0; k < SERIES; k++) value = value * y + terms[k];
    return value;
}

static double steepness(double nats) {
    return nats > 0.3 ? (nats - 1.0) * exp(nats) + 1.0 : series_at(nats) * nats * nats;
}

static double energy_factor(double snr) { return snr > 0.0 ? snr / log1p(snr) : 1.0; }

/* The x with (1 + x) ln(1 + x) - x = c, Lemma 6. */
static double optimal_snr(double c) {
    if (c <= 0.0) return 0.0;
    if (c >= LARGEST_SNR) return LARGEST_SNR;
    double y, step;
    if (c >= 10.0) {
        double level = log(c - 1.0);
        y = 1.0 + level - log(level);
        for (int k = 0; k < NEWTON_STEPS; k++) {
            step = (y + log(y - 1.0) - level) * (y - 1.0) / y;
            y -= step;
            if (fabs(step) <= 1e-15 * y) break;
        }
    } else if (c >= 0.05) {
        y = least(sqrt(2.0 * c), 1.0 + log1p(c));
        for (int k = 0; k < NEWTON_STEPS; k++) {
            double pull = (c - 1.0) * exp(-y);
            step = (y - 1.0 - pull) / (1.0 + pull);
            y -= step;
            if (fabs(step) <= 1e-15 * y) break;
        }
    } else {
        double root = sqrt(2.0 * c);
        y = root * (1.0 - root * (1.0 / 3.0 - root * (11.0 / 72.0)));
        for (int k = 0; k < NEWTON_STEPS; k++) {
            step = (series_at(y) * y * y - c) / (y * exp(y));
            y -= step;
            if (fabs(step) <= 1e-15 * y) break;
        }
    }
    return expm1(y);
}

/* Theorem 4: the best common SNR of pairs that cost so much, from smallest to largest. */
static double best_common_snr(const problem *p, double unit_cost, double smallest, double largest) {
    double delay_cost = p->delay_weight * p->nat_delay_s;
    if (largest < LARGEST_SNR && unit_cost * steepness(log1p(largest)) <= delay_cost) return most(smallest, largest);
    double wished = unit_cost > delay_cost / LARGEST_SNR ? optimal_snr(delay_cost / unit_cost) : LARGEST_SNR;
    return most(smallest, least(wished, largest));
}

static double delay_cost_at(const problem *p, double snr) {
    if (p->delay_weight == 0.0) return 0.0;
    return p->delay_weight * p->nat_delay_s * (snr > 0.0 ? 1.0 / log1p(snr) : INFINITY);
}

/* The sum of numbers as numpy adds them up: eight at a time, halves of what is long. */
static double sum_of(const double *values, count n) {
    if (n > 128) {
        count half = n / 2 - n / 2 % 8;
        return sum_of(values, half) + sum_of(values + half, n - half);
    }
    count i = 0;
    double sum = 0.0, part[8];
    if (n >= 8) {
        memcpy(part, values, sizeof part);
        for (i = 8; i < n - n % 8; i += 8)
            for (int k = 0; k < 8; k++) part[k] += values[i + k];
        sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
    }
    for (; i < n; i++) sum += values[i];
    return sum;
}

/* -- assignment.py: a matching by shortest augmenting paths (Crouse 2016) ---------------------------------- */

static inline lanes chosen(marks where, lanes yes, lanes no) {
    return (lanes)((where & (marks)yes) | (~where & (marks)no));
}

/* Of the open columns at the least distance: the last free one in their order, else the first. */
static count among_equals(const search *s, count left, double nearest) {
    count first = -1, empty = -1;
    for (count k = 0; k < left; k++) {
        count j = s->order[k];
        if (s->distance[j] != nearest) continue;
        if (first < 0) first = j;
        if (s->row_of[j] < 0) empty = j;
    }
    return empty >= 0 ? empty : first;
}

/* Give a row a column, along the shortest path of changes; width is the row's length in whole vectors. */
static void augment(search *s, count row, count num_columns, count width) {
    count left = num_columns, num_visited = 0, i = row, sink = -1;
    double reached = 0.0;
    for (count k = 0; k < num_columns; k++) s->order[k] = num_columns - 1 - k, s->place[num_columns - 1 - k] = k;
    for (count j = 0; j < width; j++) s->distance[j] = INFINITY;
    for (count j = 0; j <= num_columns / 64; j++) s->open[j] = j < num_columns / 64 ? -1 : (1LL << num_columns % 64) - 1;
    const marks bits = {1, 2, 4, 8};
    while (sink < 0) {
        const double *cost = s->cost + i * width;
        lanes nearest = (lanes){0} + INFINITY;
        marks lane = {0, 1, 2, 3}, where = {0}, is_tied = {0};
        for (count j = 0; j < width; j += LANES, lane += LANES) {
            lanes old = *(lanes *)(s->distance + j);
            lanes way = ((reached + *(const lanes *)(cost + j)) - s->u[i]) - *(lanes *)(s->v + j);
            marks is_open = (marks)((((marks){0} + (s->open[j / 64] >> j % 64)) & bits) != 0);
            marks is_nearer = (marks)(way < old) & is_open;
            lanes now = chosen(is_nearer, way, old);
            *(lanes *)(s->distance + j) = now;
            marks *from = (marks *)(s->from + j);
            *from = (is_nearer & ((marks){0} + i)) | (~is_nearer & *from);
            now = chosen(is_open, now, (lanes){0} + INFINITY);
            marks is_least = (marks)(now < nearest);
            is_tied = ~is_least & (is_tied | (marks)(now == nearest));
            where = (is_least & lane) | (~is_least & where);
            nearest = chosen(is_least, now, nearest);
        }
        count j = where[0];
        int64_t has_tie = is_tied[0];
        reached = nearest[0];
        for (int k = 1; k < LANES; k++) {
            if (nearest[k] == reached) has_tie = 1;
            else if (nearest[k] < reached) reached = nearest[k], j = where[k], has_tie = is_tied[k];
        }
        if (has_tie) j = among_equals(s, left, reached);
        s->visited[num_visited++] = j;
        s->open[j / 64] &= ~(1LL << j % 64); /* one bit for each column */
        count last = s->order[--left];
        s->order[s->place[j]] = last, s->place[last] = s->place[j];
        if (s->row_of[j] < 0) sink = j;
        else i = s->row_of[j];
    }
    s->u[row] += reached;
    for (count k = 0; k < num_visited; k++) {
        count j = s->visited[k];
        if (j != sink) s->u[s->row_of[j]] += reached - s->distance[j];
        s->v[j] -= reached - s->distance[j];
    }
    for (count j = sink;;) {
        count i_new = s->from[j], next = s->column_of[i_new];
        s->row_of[j] = i_new, s->column_of[i_new] = j, j = next;
        if (i_new == row) break;
    }
}

/* The columns of the largest rows x columns matching of the least cost; rows <= columns. */
static void assign(search *s, count rows, count columns, count width) {
    memset(s->u, 0, rows * sizeof(double)), memset(s->v, 0, width * sizeof(double));
    for (count i = 0; i < rows; i++) s->column_of[i] = -1;
    for (count j = 0; j < columns; j++) s->row_of[j] = -1;
    for (count i = 0; i < rows; i++) augment(s, i, columns, width);
}

/* The rank-th smallest of some numbers (rank from 0), which are moved about. */
static double quickselect(double *values, count n, count rank) {
    count low = 0, high = n - 1;
    while (low < high) {
        double pivot = values[rank];
        count i = low, j = high;
        while (i <= j) {
            while (values[i] < pivot) i++;
            while (pivot < values[j]) j--;
            if (i <= j) {
                double other = values[i];
                values[i++] = values[j], values[j--] = other;
            }
        }
        if (j < rank) low = i;
        if (rank < i) high = j;
    }
    return values[rank];
}

/* The same from a guess: blocks rank devices alike, so the answer is near, and a step to the next costs little. */
static double smallest_of(const double *values, count n, count rank, double guess, double *some,
                          int guesses) {
    for (int step = 0; step < guesses; step++) {
        marks below = {0}, equal = {0};
        lanes before = (lanes){0} - INFINITY, after = (lanes){0} + INFINITY;
        for (count k = 0; k < n; k += LANES) {
            lanes value = *(const lanes *)(values + k);
            marks is_below = (marks)(value < guess), is_above = (marks)(value > guess);
            below -= is_below, equal -= ~(is_below | is_above);
            before = chosen(is_below & (marks)(value > before), value, before);
            after = chosen(is_above & (marks)(value < after), value, after);
        }
        count num_below = below[0] + below[1] + below[2] + below[3];
        count num_equal = equal[0] + equal[1] + equal[2] + equal[3];
        if (num_below <= rank && rank < num_below + num_equal) return guess;
        if (num_below > rank) guess = most(most(before[0], before[1]), most(before[2], before[3]));
        else guess = least(least(after[0], after[1]), least(after[2], after[3]));
    }
    memcpy(some, values, n * sizeof(double));
    return quickselect(some, n, rank);
}

/* Mark in kept which columns (of devices) are among the M best of some row and worth anything. */
static void mark_best(search *s) {
    const problem *p = s->p;
    count blocks = p->blocks, width = p->width, stride = s->stride;
    memset(s->kept, 0, (p->is_shared ? width : p->devices) * sizeof(int64_t));
    count last = 0; /* the column of the last row's M-th best */
    for (count m = 0; m < blocks; m++) {
        const double *loss = s->loss + m * stride;
        count num_gains = 0;
        for (count k = 0; k < stride; k++) num_gains += loss[k] < 0.0;
        double worst = -0x1p-1074;
        if (num_gains > blocks) {
            worst = smallest_of(loss, stride, blocks - 1, loss[last], s->some, p->is_shared ? GUESSES : 0);
            for (last = 0; loss[last] != worst;) last++;
        }
        if (p->is_shared)
            for (count k = 0; k < width; k++) s->kept[k] |= loss[k] <= worst;
        else
            for (count k = 0; k < width; k++) {
                if (loss[k] <= worst) s->kept[p->device[m * width + k]] = 1;
                else s->loss[m * stride + k] = 0.0; /* not among its row's best: not matched */
            }
    }
}

/* Keep the marked columns' numbers at the front of kept; return how many there are. */
static count gather(search *s, count n) {
    count found = 0;
    for (count k = 0; k < n; k++) {
        s->local[k] = found;
        if (s->kept[k]) s->kept[found++] = k;
    }
    return found;
}

/* Put the best matching of s->loss into columns: for each block its column of the table, or -1. */
static void match_losses(search *s, int32_t *columns) {
    const problem *p = s->p;
    count blocks = p->blocks, width = p->width, found = width;
    int is_whole = p->is_shared && width <= 1.5 * blocks;
    for (count m = 0; m < blocks; m++) columns[m] = -1;
    if (!is_whole) {
        mark_best(s);
        found = gather(s, p->is_shared ? width : p->devices);
    } else
        for (count k = 0; k < width; k++) s->kept[k] = k;
    if (found == 0) return;
    count every = found + p->barred; /* columns that keep a block empty come last */
    int is_turned = every < blocks;
    count rows = is_turned ? every : blocks, num_columns = is_turned ? blocks : every;
    count padded = (num_columns + LANES - 1) / LANES * LANES;
    double best = 0.0;
    for (count k = 0; k < blocks * s->stride && p->barred > 0; k++) best = least(best, s->loss[k]);
    for (count k = 0; k < rows * padded; k++) s->cost[k] = 0.0;
    for (count m = 0; m < blocks; m++) {
        const double *loss = s->loss + m * s->stride;
        if (p->is_shared)
            for (count k = 0; k < found; k++) s->cost[is_turned ? k * padded + m : m * padded + k] = loss[s->kept[k]];
        else
            for (count k = 0; k < width; k++) {
                count own = s->local[p->device[m * width + k]];
                if (loss[k] < 0.0) s->cost[is_turned ? own * padded + m : m * padded + own] = loss[k];
            }
    }
    for (count m = 0; m < blocks; m++)
        for (count k = found; k < every; k++) s->cost[is_turned ? k * padded + m : m * padded + k] = 2.0 * best;
    assign(s, rows, num_columns, padded);
    for (count i = 0; i < rows; i++) {
        count m = is_turned ? s->column_of[i] : i, own = is_turned ? i : s->column_of[i];
        if (own >= found) continue;
        const double *loss = s->loss + m * s->stride;
        if (p->is_shared) {
            if (loss[s->kept[own]] < 0.0) columns[m] = (int32_t)s->kept[own];
        } else
            for (count k = 0; k < width; k++)
                if (loss[k] < 0.0 && p->device[m * width + k] == s->kept[own]) columns[m] = (int32_t)k;
    }
}

/* -- a matching from an earlier one ------------------------------------------------------------------------- */

/* Nodes that lie close have matchings that are alike. So one met before is changed until nothing improves it, and
 * taken only if every other matching is worse by more than any rounding: then the one from scratch is the same,
 * however it breaks ties. Row k may move to a column that row i holds, which then moves on, and so forth, until a
 * row takes a free column or none; or the rows move in a circle. Bellman and Ford's method finds the cheapest such
 * moves. Each is made cheaper by the margin, so where nothing is gained all moves cost more than that.
 */

/* Put the best of the last matchings, at the losses of now, into columns; return whether there is one. */
static int recall(search *s, int32_t *columns) {
    count blocks = s->p->blocks, last = s->num_matchings - 1, best = -1;
    double least_loss = INFINITY;
    for (count which = last > RECALLED ? last - RECALLED : 0; which < last; which++) {
        const int32_t *old = s->columns + which * blocks;
        double sum = 0.0;
        for (count m = 0; m < blocks; m++) sum += old[m] < 0 ? 0.0 : s->loss[m * s->stride + old[m]];
        if (sum < least_loss) least_loss = sum, best = which;
    }
    for (count m = 0; m < blocks && best >= 0; m++) {
        int32_t old = s->columns[best * blocks + m];
        columns[m] = old >= 0 && s->loss[m * s->stride + old] < 0.0 ? old : -1;
    }
    return best >= 0;
}

static inline double loss_at(const search *s, count m, int32_t column) {
    return column < 0 ? 0.0 : s->loss[m * s->stride + column];
}

/* Find the least loss of each row on a column that nobody holds, or on none. */
static void price_free(search *s, const int32_t *columns) {
    for (count j = 0; j < s->stride; j++) s->distance[j] = 0.0; /* infinite for a column that is held */
    for (count k = 0; k < s->p->blocks; k++)
        if (columns[k] >= 0) s->distance[columns[k]] = INFINITY;
    for (count k = 0; k < s->p->blocks; k++) {
        lanes nearest = {0};
        for (count j = 0; j < s->stride; j += LANES) {
            lanes loss = *(lanes *)(s->loss + k * s->stride + j) + *(lanes *)(s->distance + j);
            nearest = chosen((marks)(loss < nearest), loss, nearest);
        }
        s->free_loss[k] = least(least(nearest[0], nearest[1]), least(nearest[2], nearest[3]));
    }
}

/* Let moved[k] be row k's loss if it leaves for a free column, and swap[i][k] that on the column of row i. */
static void price_moves(search *s, const int32_t *columns, double margin) {
    count blocks = s->p->blocks, rows = whole(blocks);
    for (count k = 0; k < blocks; k++) {
        s->own[k] = loss_at(s, k, columns[k]);
        s->moved[k] = columns[k] >= 0 || s->free_loss[k] < 0.0 ? s->free_loss[k] - margin : INFINITY;
        s->next[k] = -1, s->passed_on[k] = INFINITY;
        if (columns[k] == s->held[k]) continue;
        double *swap = s->swap + k * rows;
        for (count i = 0; i < blocks; i++) { /* a column that is worth nothing to row i is as good as none */
            double loss = loss_at(s, i, columns[k]);
            swap[i] = loss < 0.0 && i != k ? loss - margin : INFINITY;
        }
        s->held[k] = columns[k];
    }
}

/* One pass: each row may move to where row i is, which then moves on; return whether this is cheaper for any. */
static int pass_on(search *s) {
    count blocks = s->p->blocks, rows = whole(blocks);
    int is_any = 0;
    for (count i = 0; i < blocks; i++) {
        double chain = s->moved[i] - s->own[i];
        if (!(chain < s->passed_on[i])) continue;
        s->passed_on[i] = chain, is_any = 1;
        for (count k = 0; k < rows; k += LANES) {
            lanes old = *(lanes *)(s->moved + k), way = *(lanes *)(s->swap + i * rows + k) + chain;
            marks is_cheaper = (marks)(way < old), *next = (marks *)(s->next + k);
            *(lanes *)(s->moved + k) = chosen(is_cheaper, way, old);
            *next = (is_cheaper & ((marks){0} + i)) | (~is_cheaper & *next);
        }
    }
    return is_any;
}

/* Move the rows from one on, in a circle or to a free column; return whether that lowers the losses for sure. */
static int move(search *s, int32_t *columns, count row, int is_circle, double margin) {
    int32_t first = columns[row];
    double change = 0.0;
    for (count k = row;;) {
        count next = s->next[k];
        if (next >= 0) columns[k] = is_circle && next == row ? first : columns[next];
        else {
            columns[k] = -1;
            for (int32_t j = 0; j < s->p->width; j++)
                if (s->distance[j] == 0.0 && loss_at(s, k, j) < loss_at(s, k, columns[k])) columns[k] = j;
        }
        change += loss_at(s, k, columns[k]) - s->own[k];
        if (next < 0 || next == row) return change < -margin;
        k = next;
    }
}

enum { UNSURE = -1, NOTHING = 0, CIRCLES = 1, CHAIN = 2 };

/* Make all circles of moves, or else the cheapest chain that costs less than nothing; return what was done. */
static int make_moves(search *s, int32_t *columns, double margin) {
    count blocks = s->p->blocks, cheapest = 0;
    int done = NOTHING;
    for (count k = 0; k < blocks; k++) s->seen[k] = -1;
    for (count k = 0; k < blocks; k++) {
        count i = k;
        while (i >= 0 && s->seen[i] < 0) s->seen[i] = k, i = s->next[i];
        if (i >= 0 && s->seen[i] == k) {
            if (!move(s, columns, i, 1, margin)) return UNSURE;
            done = CIRCLES;
        }
        if (s->moved[k] - s->own[k] < s->moved[cheapest] - s->own[cheapest]) cheapest = k;
    }
    if (done == CIRCLES || !(s->moved[cheapest] < s->own[cheapest])) return done;
    return move(s, columns, cheapest, 0, margin) ? CHAIN : UNSURE;
}

/* Put the one best matching into columns, from those met before; return 0 where it is not sure to be found. */
static int rematch(search *s, int32_t *columns) {
    const problem *p = s->p;
    double margin = MARGIN * p->largest_contribution;
    if (!p->is_shared || p->barred > 0 || p->blocks > MOST_ROWS || s->num_unsure > MOST_UNSURE) return 0;
    if (!(margin > 0.0) || !recall(s, columns)) return 0;
    s->num_unsure++;
    for (count k = 0; k < p->blocks; k++) s->held[k] = -2;
    int done = CHAIN;
    for (count pass = 0; pass < MOST_PASSES * p->blocks; pass++) {
        if (done == CHAIN) price_free(s, columns);
        if (done != NOTHING) price_moves(s, columns, margin);
        if (!pass_on(s)) { s->num_unsure = 0, s->num_rematched++; return 1; }
        done = make_moves(s, columns, margin);
        if (done == UNSURE) return 0;
    }
    return 0;
}

/* -- pairs.py and common_snr.py: what pairs are worth ------------------------------------------------------ */

static inline double contribution_of(const problem *p, count m, count k) {
    return p->contribution[p->is_shared ? k : m * p->width + k];
}

/* Make the lines those that touch the worths at an SNR; without faster uploads they are the table itself. */
static void touch(search *s, double snr) {
    const problem *p = s->p;
    if (s->lines_snr == snr) return;
    s->lines_snr = snr;
    if (p->favourite == NULL) return;
    count size = p->blocks * p->width;
    if (snr < LEVEL_SNR) {
        memcpy(s->line_contribution, p->worth, size * sizeof(double));
        memset(s->line_cost, 0, size * sizeof(double));
        return;
    }
    double nats = log1p(snr), factor = energy_factor(snr), steep = steepness(nats);
    double circuit = 1.0 / nats + factor / steep, circuit_slope = 1.0 / steep;
    for (count m = 0; m < p->blocks; m++)
        for (count k = 0; k < p->width; k++) {
            count at = m * p->width + k;
            double cost = p->unit_cost[at] - p->circuit_cost[at] * circuit_slope;
            int follows = p->favourite[at] < least(p->snr_cap[at], snr) && cost > 0.0;
            s->line_contribution[at] =
                follows ? contribution_of(p, m, k) - p->circuit_cost[at] * circuit : p->worth[at];
            s->line_cost[at] = follows ? cost : 0.0;
        }
}

static inline double line_contribution(const search *s, count m, count k) {
    return s->p->favourite == NULL ? contribution_of(s->p, m, k) : s->line_contribution[m * s->p->width + k];
}

static inline const double *line_cost(const search *s) {
    return s->p->favourite == NULL ? s->p->unit_cost : s->line_cost;
}

/* Sums over the pairs of a matching that can reach an SNR, sorted by favourite. */
static void sum_up(search *s, count which, double least_cap) {
    const problem *p = s->p;
    const int32_t *columns = s->columns + which * p->blocks;
    double *circuit = s->sum_circuit, *favourite = s->sum_favourite, *contribution = s->sum_contribution;
    double *cost = s->sum_cost, *worth = s->sum_worth;
    count n = 0;
    for (count m = 0; m < p->blocks; m++) {
        if (columns[m] < 0) continue;
        count at = m * p->width + columns[m], place = n;
        if (p->snr_cap[at] < least_cap) continue;
        while (place > 0 && favourite[place - 1] > p->favourite[at]) {
            favourite[place] = favourite[place - 1], contribution[place + 1] = contribution[place];
            cost[place + 1] = cost[place], worth[place] = worth[place - 1], circuit[place + 1] = circuit[place];
            place--;
        }
        favourite[place] = p->favourite[at], contribution[place + 1] = contribution_of(p, m, columns[m]);
        cost[place + 1] = p->unit_cost[at], worth[place] = p->worth[at], circuit[place + 1] = p->circuit_cost[at];
        n++;
    }
    contribution[0] = cost[0] = circuit[0] = worth[n] = 0.0;
    for (count k = 1; k < n; k++)
        contribution[k + 1] += contribution[k], cost[k + 1] += cost[k], circuit[k + 1] += circuit[k];
    for (count k = 1; k <= n && p->has_one_circuit; k++) circuit[k] = (double)k * p->circuit_cost[0];
    for (count k = n - 1; k > 0; k--) worth[k - 1] += worth[k];
    s->num_sums = n;
}

static count num_below(const search *s, double snr) {
    count below = 0;
    while (below < s->num_sums && s->sum_favourite[below] < snr) below++;
    return below;
}

static double shared_value(const search *s, double snr) {
    count n = num_below(s, snr);
    double value = s->sum_worth[n];
    if (n > 0) value += s->sum_contribution[n] - (s->sum_cost[n] * snr + s->sum_circuit[n]) / log1p(snr);
    return value;
}

static double shared_best_snr(const search *s, double smallest, double largest) {
    double price = s->p->nat_delay_s * s->p->delay_weight;
    count first = num_below(s, smallest), last = num_below(s, largest), low = first, high = last;
    while (low < high) {
        count middle = (low + high) / 2;
        double nats = log1p(s->sum_favourite[middle]);
        if (s->sum_circuit[middle] + price - s->sum_cost[middle] * steepness(nats) > 0.0) low = middle + 1;
        else high = middle;
    }
    double start = low == first ? smallest : s->sum_favourite[low - 1];
    double end = low == last ? largest : s->sum_favourite[low];
    if (low == 0) return end;
    price = s->sum_circuit[low] + price;
    double cost = s->sum_cost[low];
    double wished = cost > price / LARGEST_SNR ? optimal_snr(price / cost) : LARGEST_SNR;
    return most(start, least(wished, end));
}

/* -- search.py ---------------------------------------------------------------------------------------------- */

/* Return more room for an array, or the same and the word that there is none. */
static void *more(search *s, void *array, count *room, count size) {
    void *larger = realloc(array, (size_t)(2 * *room * size));
    if (larger == NULL) { s->has_failed = 1; return array; }
    *room *= 2;
    return larger;
}

/* Keep a matching, at its own best SNR, if it beats the incumbent. */
static void offer(search *s, count which) {
    const problem *p = s->p;
    const matching *found = s->matchings + which;
    double snr, value;
    if (found->snr_cap == INFINITY) return; /* nobody */
    if (p->favourite == NULL) {
        snr = best_common_snr(p, found->unit_cost, p->floor, found->snr_cap);
        value = found->contribution - found->unit_cost * energy_factor(snr) - delay_cost_at(p, snr);
    } else {
        sum_up(s, which, -INFINITY);
        snr = shared_best_snr(s, p->floor, found->snr_cap);
        value = shared_value(s, snr) - delay_cost_at(p, snr);
    }
    if (!(value > s->value)) return;
    s->best = which, s->snr = snr, s->value = value;
    if (s->num_traced == s->room_trace) { s->has_failed = 1; return; }
    s->trace[s->num_traced++] = value;
}

/* Return the number of the best matching of the lines that touch at an SNR, at another SNR and smallest cap. */
static count match(search *s, double lines, double snr, double smallest_cap) {
    const problem *p = s->p;
    count blocks = p->blocks, width = p->width, num_found = 0;
    if (s->num_matchings == s->room_matchings) {
        count room = s->room_matchings;
        s->columns = more(s, s->columns, &room, blocks * sizeof(int32_t));
        s->matchings = more(s, s->matchings, &s->room_matchings, sizeof(matching));
        if (s->has_failed) return 0;
    }
    touch(s, lines);
    double factor = energy_factor(snr), cap = INFINITY, *contributions = s->some, *costs = s->cost;
    const double *unit_cost = line_cost(s);
    for (count m = 0; m < blocks; m++) {
        const double *cost = unit_cost + m * width, *caps = p->snr_cap + m * width;
        const double *worth = p->favourite == NULL ? p->contribution + (p->is_shared ? 0 : m * width)
                                                   : s->line_contribution + m * width;
        double *losses = s->loss + m * s->stride;
        for (count k = 0; k < width; k++) {
            double loss = cost[k] * factor - worth[k];
            losses[k] = (loss < 0.0) & (caps[k] >= smallest_cap) ? loss : 0.0;
        }
    }
    count which = s->num_matchings++;
    int32_t *columns = s->columns + which * blocks;
    if (!rematch(s, columns)) match_losses(s, columns);
    for (count m = 0; m < blocks; m++) {
        if (columns[m] < 0) continue;
        count at = m * width + columns[m];
        contributions[num_found] = line_contribution(s, m, columns[m]);
        costs[num_found++] = unit_cost[at];
        cap = least(cap, p->snr_cap[at]);
    }
    double contribution = sum_of(contributions, num_found), cost = sum_of(costs, num_found);
    s->matchings[which] = (matching){contribution, cost, factor, smallest_cap, cap, contribution - cost * factor};
    offer(s, which);
    return which;
}

static void chord(const search *s, count at_low, count at_high, double *height, double *slope) {
    const matching *low = s->matchings + at_low, *high = s->matchings + at_high;
    double span = high->factor - low->factor;
    if (span <= 0.0) {
        *height = least(low->best_value, high->best_value), *slope = low->unit_cost;
        return;
    }
    *height = most(low->best_value, high->best_value);
    *slope = (*height - high->best_value) / span;
}

/* A node with the best point of its chord for a bound. */
static node bounded(const search *s, double low, double high, double cap, double lines, count at_low, count at_high) {
    double height, slope;
    chord(s, at_low, at_high, &height, &slope);
    double snr = best_common_snr(s->p, slope, low, high);
    double rise = energy_factor(snr) - s->matchings[at_low].factor;
    double bound = height - slope * rise - delay_cost_at(s->p, snr);
    return (node){low, high, cap, lines, bound, snr, at_low, at_high, 0, 0};
}

/* A part of a node, matched at the ends that it does not share with it; no worse a bound than its parent's. */
static node matched(search *s, const node *parent, double low, double high, double cap, double lines, int is_same) {
    count at_low = parent->at_low, at_high = parent->at_high;
    is_same = is_same && cap == parent->smallest_cap;
    if (!(is_same && low == parent->low)) at_low = match(s, lines, low, cap);
    if (!(is_same && high == parent->high)) at_high = match(s, lines, high, cap);
    node found = bounded(s, low, high, cap, lines, at_low, at_high);
    if (!(found.upper_bound <= parent->upper_bound)) found.upper_bound = parent->upper_bound;
    return found;
}

static int comes_first(const node *one, const node *other) {
    if (one->upper_bound != other->upper_bound) return one->upper_bound > other->upper_bound;
    return one->number < other->number;
}

static void sort_in(search *s, node new) {
    if (!(new.upper_bound > s->value) || new.is_point) {
        s->closed = most(s->closed, new.upper_bound);
        return;
    }
    if (s->num_open == s->room_open) {
        s->heap = more(s, s->heap, &s->room_open, sizeof(node));
        if (s->has_failed) return;
    }
    new.number = s->num_nodes++;
    count k = s->num_open++;
    for (; k > 0 && comes_first(&new, s->heap + (k - 1) / 2); k = (k - 1) / 2) s->heap[k] = s->heap[(k - 1) / 2];
    s->heap[k] = new;
}

static node taken(search *s) {
    node first = s->heap[0], last = s->heap[--s->num_open];
    count k = 0;
    for (;;) {
        count child = 2 * k + 1;
        if (child + 1 < s->num_open && comes_first(s->heap + child + 1, s->heap + child)) child++;
        if (child >= s->num_open || !comes_first(s->heap + child, &last)) break;
        s->heap[k] = s->heap[child], k = child;
    }
    if (s->num_open > 0) s->heap[k] = last;
    return first;
}

/* Newton's steps towards the nearest root of height v - slope (e^v - 1) - price, from where it is negative. */
static double approach(double height, double slope, double price, double nats) {
    for (int k = 0; k < SHRINK_STEPS; k++) {
        double growth = exp(nats), snr = nats > FEW_NATS ? growth - 1.0 : expm1(nats);
        double value = height * nats - slope * snr - price, rise = height - slope * growth;
        if (value >= 0.0 || rise == 0.0) break;
        nats -= value / rise;
    }
    return nats;
}

/* Cut a node to where its chord beats the incumbent. */
static void shrink(const search *s, node *old) {
    double height, slope, price = s->p->delay_weight * s->p->nat_delay_s, low = old->low, high = old->high;
    chord(s, old->at_low, old->at_high, &height, &slope);
    height = height + slope * s->matchings[old->at_low].factor - s->value;
    double new_low = low, new_high = high, best = old->best_snr;
    if (low < best) {
        new_low = expm1(approach(height, slope, price, log1p(low)));
        if (!(low + WORTHWHILE * (best - low) < new_low && new_low < best)) new_low = low;
    }
    if (best < high) {
        new_high = expm1(approach(height, slope, price, log1p(high)));
        if (!(best < new_high && new_high < high)) new_high = high;
    }
    if (new_low > low) old->smallest_cap = most(old->smallest_cap, nextafter(new_low, INFINITY));
    old->low = new_low, old->high = new_high;
}

static void split(search *s, const node *old, count at_best) {
    const problem *p = s->p;
    double snr = old->best_snr, weakest = s->matchings[at_best].snr_cap, cut = snr, strongest = 0.0;
    int is_matched = weakest >= snr;
    if (!is_matched) {
        const int32_t *columns = s->columns + at_best * p->blocks;
        for (count m = 0; m < p->blocks; m++) {
            if (columns[m] < 0) continue;
            double cap = p->snr_cap[m * p->width + columns[m]];
            if (cap < snr) strongest = most(strongest, cap);
        }
        cut = most(weakest, least(sqrt(weakest) * sqrt(snr), strongest));
    }
    double cap = nextafter(cut, INFINITY);
    sort_in(s, bounded(s, old->low, cut, old->smallest_cap, old->lines, old->at_low, at_best));
    if (is_matched && cut >= old->high) return;
    sort_in(s, bounded(s, cut, old->high, cap, old->lines, is_matched ? at_best : old->at_low, old->at_high));
}

/* By how much the lines overrate a matching at the node's best point, of those that can keep up there. */
static double lost_to_lines(search *s, const node *old, count at_best) {
    const problem *p = s->p;
    const int32_t *columns = s->columns + at_best * p->blocks;
    double *contributions = s->some, *costs = s->cost;
    count n = 0;
    touch(s, old->lines);
    for (count m = 0; m < p->blocks; m++) {
        if (columns[m] < 0 || p->snr_cap[m * p->width + columns[m]] < old->best_snr) continue;
        contributions[n] = line_contribution(s, m, columns[m]);
        costs[n++] = line_cost(s)[m * p->width + columns[m]];
    }
    double rated = sum_of(contributions, n) - energy_factor(old->best_snr) * sum_of(costs, n);
    sum_up(s, at_best, old->best_snr);
    return rated - shared_value(s, old->best_snr);
}

static int is_at_kink(const search *s) {
    const problem *p = s->p;
    if (s->best < 0) return 0;
    const int32_t *columns = s->columns + s->best * p->blocks;
    for (count m = 0; m < p->blocks; m++)
        if (columns[m] >= 0 && p->favourite[m * p->width + columns[m]] == s->snr) return 1;
    return 0;
}

static void touch_anew(search *s, const node *old, double new) {
    double lines = old->lines;
    if (!(old->low <= lines && lines <= old->high)) {
        sort_in(s, matched(s, old, old->low, old->high, old->smallest_cap, new, 0));
        return;
    }
    double cut = sqrt(lines) * sqrt(new), cap = most(old->smallest_cap, nextafter(cut, INFINITY));
    int is_left = new < lines; /* the part of the new tangents */
    node left = matched(s, old, old->low, cut, old->smallest_cap, is_left ? new : lines, !is_left);
    node right = matched(s, old, cut, old->high, cap, is_left ? lines : new, is_left);
    sort_in(s, left), sort_in(s, right);
}

/* Sort in nodes that cover this one, with better bounds. */
static void branch(search *s, node old) {
    if (!(nextafter(old.low, INFINITY) < old.high)) { /* no float lies between: closed with the bound of its point */
        double lines = s->p->favourite == NULL ? old.lines : old.high;
        count at_low = match(s, lines, old.low, old.smallest_cap), at_high = match(s, lines, old.high, old.smallest_cap);
        node point = bounded(s, old.low, old.high, old.smallest_cap, lines, at_low, at_high);
        point.upper_bound = least(point.upper_bound, old.upper_bound), point.is_point = 1;
        sort_in(s, point);
        return;
    }
    shrink(s, &old);
    double cap = old.smallest_cap;
    count at_low = old.at_low, at_high = old.at_high;
    if (old.best_snr < old.high && s->matchings[at_low].snr_cap < cap) at_low = match(s, old.lines, old.low, cap);
    else if (old.best_snr > old.low && s->matchings[at_high].snr_cap < cap) at_high = match(s, old.lines, old.high, cap);
    if (at_low != old.at_low || at_high != old.at_high) {
        sort_in(s, bounded(s, old.low, old.high, cap, old.lines, at_low, at_high));
        return;
    }
    double incumbent = s->snr;
    if (s->p->has_kinks && old.low <= incumbent && incumbent < old.high && is_at_kink(s)) {
        double above = nextafter(incumbent, INFINITY);
        if (old.low < incumbent) {
            node left = matched(s, &old, old.low, incumbent, cap, incumbent, 0);
            node right = matched(s, &old, incumbent, old.high, most(cap, above), above, 0);
            sort_in(s, left), sort_in(s, right);
            return;
        }
        incumbent = above;
    }
    double factor = energy_factor(old.best_snr);
    count at_best = -1;
    if (s->matchings[at_high].factor == factor && s->matchings[at_high].snr_cap >= cap) at_best = at_high;
    else if (s->matchings[at_low].factor == factor && s->matchings[at_low].snr_cap >= cap) at_best = at_low;
    else at_best = match(s, old.lines, old.best_snr, cap);
    if (s->p->favourite != NULL) {
        double new = old.best_snr;
        if (old.low <= incumbent && incumbent <= old.high && incumbent != old.lines) new = incumbent;
        if (new != old.lines && lost_to_lines(s, &old, at_best) > 0.5 * (old.upper_bound - s->value)) {
            touch_anew(s, &old, new);
            return;
        }
    }
    split(s, &old, at_best);
}

/* A good SNR: some are tried, then blocks and SNR are improved in turns. */
static double probe(search *s, double low, double high) {
    double first = log(low), last = log(high), before = 0.0;
    for (int step = 0; step < NUM_PROBES; step++) {
        double snr = exp(first + (last - first) * (step + 0.5) / NUM_PROBES);
        match(s, snr, snr, snr);
    }
    while (s->value > before && !s->has_failed) {
        before = s->value;
        match(s, s->snr, s->snr, s->snr);
    }
    return s->best >= 0 ? s->snr : exp(0.5 * (first + last));
}

/* Sort in the whole range of useful SNRs; return 0 if nobody can upload with profit. */
static int begin(search *s, double *rounding) {
    const problem *p = s->p;
    double highest = 0.0, low = most(p->floor, 0x1p-1074);
    for (count k = 0; k < p->blocks * p->width; k++) highest = most(highest, p->snr_cap[k]);
    if (highest <= 0.0) return 0;
    if (p->delay_weight > 0.0) {
        double nats = p->delay_weight * p->nat_delay_s / p->largest_contribution;
        low = nats < 600.0 ? most(low, expm1(nats)) : INFINITY;
    }
    if (p->favourite != NULL) low = most(low, p->least_favourite);
    if (low > highest) return 0;
    double lines = p->favourite == NULL ? low : probe(s, low, highest);
    count at_low = match(s, lines, low, low);
    if (s->matchings[at_low].snr_cap == INFINITY) return 0;
    count at_high = match(s, lines, highest, low);
    sort_in(s, bounded(s, low, highest, low, lines, at_low, at_high));
    *rounding = ROUNDING * s->matchings[at_low].contribution;
    if (p->favourite != NULL) *rounding = ROUNDING * (p->largest_contribution + p->compute_cost);
    return 1;
}

static double granted(const search *s) {
    return s->p->relative_gap * least(fabs(s->value), fabs(s->value - s->p->compute_cost));
}

static int is_spent(const search *s, count limit) {
    return s->num_matchings >= limit || s->num_steps >= STEPS * limit;
}

/* Branch until the gap is closed or the matchings run out. */
static void narrow(search *s, double rounding) {
    count extra = 0, limit = s->p->max_matchings;
    while (s->num_open > 0 && !s->has_failed) {
        double upper_bound = s->heap[0].upper_bound;
        if (upper_bound <= s->value + rounding) return;
        if (upper_bound <= s->value + granted(s)) {
            if (extra == 0) extra = s->num_matchings + s->num_matchings / 2 + EXTRA;
            if (is_spent(s, extra < limit ? extra : limit)) return;
        } else if (is_spent(s, limit))
            return;
        s->num_steps++;
        branch(s, taken(s));
    }
}

static void *room_for(count n, count size) { /* aligned for vectors, and never nothing */
    size_t bytes = (size_t)((n + LANES) * size + 63) / 64 * 64;
    void *room = aligned_alloc(64, bytes);
    if (room != NULL) memset(room, 0, bytes);
    return room;
}

/* Search; put the incumbent's columns into columns (M), its values so far into trace; return how it ended. */
count fedwave_search(const problem *p, answer *found, int64_t *columns, double *trace, count room_trace) {
    count longest = p->width > p->devices ? p->width : p->devices, size = p->blocks * p->width;
    longest = (longest > p->blocks ? longest : p->blocks) + p->barred;
    search s = {.p = p, .lines_snr = NAN, .closed = -INFINITY, .best = -1, .trace = trace, .room_trace = room_trace};
    s.room_matchings = s.room_open = 64;
    s.stride = (p->width + LANES - 1) / LANES * LANES;
    double **numbers[] = {&s.line_contribution, &s.line_cost, &s.loss, &s.cost, &s.some, &s.u, &s.v, &s.distance,
                          &s.sum_favourite, &s.sum_contribution, &s.sum_cost, &s.sum_worth, &s.sum_circuit, &s.moved, &s.own,
                          &s.free_loss, &s.passed_on, &s.swap};
    int64_t **indices[] = {&s.from, &s.open, &s.row_of, &s.column_of, &s.order, &s.place, &s.visited, &s.kept, &s.local, &s.next, &s.seen, &s.held};
    enum { NUM_NUMBERS = sizeof numbers / sizeof *numbers, NUM_INDICES = sizeof indices / sizeof *indices };
    int has_room = 1;
    for (int k = 0; k < NUM_NUMBERS; k++) {
        count n = k < 2 ? size : k == 2 ? p->blocks * s.stride : longest + LANES;
        if (k == 3) n *= p->blocks + LANES;
        if (k == NUM_NUMBERS - 1) n = p->blocks > MOST_ROWS ? 0 : p->blocks * (p->blocks + LANES);
        *numbers[k] = room_for(n, sizeof(double)), has_room &= *numbers[k] != NULL;
    }
    for (int k = 0; k < NUM_INDICES; k++)
        *indices[k] = room_for(longest + LANES, sizeof(int64_t)), has_room &= *indices[k] != NULL;
    s.matchings = room_for(s.room_matchings, sizeof(matching));
    s.columns = room_for(s.room_matchings * p->blocks, sizeof(int32_t));
    s.heap = room_for(s.room_open, sizeof(node));
    s.has_failed = !has_room || s.matchings == NULL || s.columns == NULL || s.heap == NULL;
    double rounding = 0.0, upper_bound = 0.0;
    count status = OPTIMAL;
    if (!s.has_failed && begin(&s, &rounding)) {
        narrow(&s, rounding);
        upper_bound = s.num_open > 0 ? most(s.closed, s.heap[0].upper_bound) : s.closed;
        if (upper_bound > s.value + rounding) status = GAP_REACHED;
        if (upper_bound > s.value + granted(&s) + rounding) status = LIMIT;
        upper_bound += rounding;
    }
    for (count m = 0; m < p->blocks; m++) columns[m] = s.best < 0 ? -1 : s.columns[s.best * p->blocks + m];
    *found = (answer){s.value, s.snr, most(upper_bound, s.value), s.num_matchings, s.num_steps, s.num_traced, s.num_rematched};
    if (s.has_failed) status = FAILED;
    for (int k = 0; k < NUM_NUMBERS; k++) free(*numbers[k]);
    for (int k = 0; k < NUM_INDICES; k++) free(*indices[k]);
    free(s.matchings), free(s.columns), free(s.heap);
    return status;
}
