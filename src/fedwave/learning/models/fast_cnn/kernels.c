/* What a layer of the CNN does beside its products: 3x3 max-pool, bias and LeakyReLU, and 3x3 patches.
 *
 * All values are float32 with channels last, (images, height, width, channels). A window of the pool begins
 * at twice its output's row and column, one earlier where the extent is odd (SAME padding, stride 2). A
 * "place" is the tap of a window that is its maximum, 0 to 8. Every sum is taken in the order in which torch
 * takes it, and nothing is fused to multiply-adds, so the results are torch's to the bit.
 */
#include <stdint.h>
#include <string.h>

typedef int64_t count;
typedef struct { count top, left, height, width, rows, columns; } window_grid;

static window_grid grid_of(count height, count width) {
    window_grid grid = {height % 2, width % 2, height, width, (height + 1) / 2, (width + 1) / 2};
    return grid;
}

/* The pixel of a plane on which a tap of a window lies, or -1 outside. */
static inline count pixel_of(const window_grid *grid, count row, count column, int tap) {
    count y = 2 * row - grid->top + tap / 3, x = 2 * column - grid->left + tap % 3;
    if (y < 0 || y >= grid->height || x < 0 || x >= grid->width) return -1;
    return y * grid->width + x;
}

/* outputs = LeakyReLU(largest of nine values + bias), places = its tap; of equal values the first. */
static inline void pool_window(const float *const *values, const int32_t *tap_of, const float *restrict bias,
                        float slope, count channels, float *restrict outputs,
                        uint8_t *restrict places) {
    for (count c = 0; c < channels; c++) {
        float most = values[0][c];
        int32_t tap = tap_of[0];
        for (int i = 1; i < 9; i++) {
            float value = values[i][c];
            int larger = (value > most) | (value != value);
            most = larger ? value : most;
            tap = larger ? tap_of[i] : tap;
        }
        most += bias[c];
        outputs[c] = most * (most > 0 ? 1.0f : slope);
        places[c] = (uint8_t)tap;
    }
}

/* The layer's pool, bias and LeakyReLU; every images_of_bias images have a bias of their own. */
void fedwave_pool(const float *restrict responses, const float *restrict bias, float slope, count images,
                  count height, count width, count channels, count images_of_bias, count stride_of_bias,
                  float *restrict outputs, uint8_t *restrict places) {
    window_grid grid = grid_of(height, width);
    for (count image = 0; image < images; image++) {
        const float *plane = responses + image * height * width * channels;
        const float *own = bias + image / images_of_bias * stride_of_bias;
        for (count row = 0; row < grid.rows; row++)
            for (count column = 0; column < grid.columns; column++) {
                const float *values[9];
                int32_t tap_of[9];
                int first = 0;
                while (pixel_of(&grid, row, column, first) < 0) first++;
                for (int tap = 0; tap < 9; tap++) { /* outside: the first value again, never larger */
                    count pixel = pixel_of(&grid, row, column, tap);
                    tap_of[tap] = pixel < 0 ? first : tap;
                    if (pixel < 0) pixel = pixel_of(&grid, row, column, first);
                    values[tap] = plane + pixel * channels;
                }
                pool_window(values, tap_of, own, slope, channels, outputs, places);
                outputs += channels, places += channels;
            }
    }
}

/* The windows along one side in which a pixel lies, one or two: the first, and which of its taps it is. */
typedef struct { count first, number, tap; } windows_of_pixel;

static windows_of_pixel windows_of(count at, count before, count windows) {
    windows_of_pixel found;
    count last = (at + before) / 2;  /* the last window that begins at the pixel or before it */
    if (last >= windows) last = windows - 1;
    found.first = at + before - 2 * (last - 1) <= 2 && last > 0 ? last - 1 : last;
    found.number = last - found.first + 1;
    found.tap = at + before - 2 * found.first;
    return found;
}

/* pixel = the sum of what those of its windows hand over whose maximum it is; tap_of[i] is its tap in i. */
static inline void sum_windows(const float *const *through, const uint8_t *const *places, const uint8_t *tap_of,
                        int windows, count channels, float *restrict pixel) {
    for (count c = 0; c < channels; c++) {
        float sum = 0.0f;
        for (int i = 0; i < windows; i++) sum += places[i][c] == tap_of[i] ? through[i][c] : 0.0f;
        pixel[c] = sum;
    }
}

/* through = the gradient before the LeakyReLU; spread = each of it where its maximum was, zero elsewhere. */
void fedwave_unpool(const float *restrict gradient, const float *restrict outputs,
                    const uint8_t *restrict places, float *restrict through, float slope, count images,
                    count height, count width, count channels, float *restrict spread) {
    window_grid grid = grid_of(height, width);
    count size = grid.rows * grid.columns * channels;
    for (count i = 0; i < images * size; i++) through[i] = gradient[i] * (outputs[i] > 0 ? 1.0f : slope);
    windows_of_pixel columns[width];
    for (count x = 0; x < width; x++) columns[x] = windows_of(x, grid.left, grid.columns);
    for (count image = 0; image < images; image++, through += size, places += size)
        for (count y = 0; y < height; y++) {
            windows_of_pixel down = windows_of(y, grid.top, grid.rows);
            for (count x = 0; x < width; x++, spread += channels) {
                windows_of_pixel right = columns[x];
                const float *values[4];
                const uint8_t *maxima[4];
                uint8_t tap_of[4];
                int found = 0;
                for (count i = 0; i < down.number; i++)
                    for (count j = 0; j < right.number; j++, found++) {
                        count window = (down.first + i) * grid.columns + right.first + j;
                        values[found] = through + window * channels;
                        maxima[found] = places + window * channels;
                        tap_of[found] = (uint8_t)((down.tap - 2 * i) * 3 + right.tap - 2 * j);
                    }
                if (found == 1) sum_windows(values, maxima, tap_of, 1, channels, spread);
                else if (found == 2) sum_windows(values, maxima, tap_of, 2, channels, spread);
                else sum_windows(values, maxima, tap_of, 4, channels, spread);
            }
        }
}

/* picked += the responses at the places of the maxima: the pool as a linear function. */
void fedwave_pick(const float *restrict responses, const uint8_t *restrict places, count images,
                  count height, count width, count channels, float *restrict picked) {
    window_grid grid = grid_of(height, width);
    int32_t taps[channels];
    for (count image = 0; image < images; image++) {
        const float *plane = responses + image * height * width * channels;
        for (count row = 0; row < grid.rows; row++)
            for (count column = 0; column < grid.columns; column++) {
                for (count c = 0; c < channels; c++) taps[c] = places[c];
                for (int tap = 0; tap < 9; tap++) {
                    count pixel = pixel_of(&grid, row, column, tap);
                    if (pixel < 0) continue;
                    const float *values = plane + pixel * channels;
                    for (count c = 0; c < channels; c++)
                        picked[c] = taps[c] == tap ? picked[c] + values[c] : picked[c];
                }
                places += channels, picked += channels;
            }
    }
}

/* patches = the 3x3 neighbourhood of each pixel, (images, height, width, 9, channels), zero outside. */
void fedwave_patches(const float *restrict values, count images, count height, count width, count channels,
                     float *restrict patches) {
    for (count image = 0; image < images; image++, values += height * width * channels)
        for (count y = 0; y < height; y++)
            for (count x = 0; x < width; x++)
                for (count row = y - 1; row <= y + 1; row++, patches += 3 * channels) {
                    const float *source = values + (row * width + x - 1) * channels;
                    if (row < 0 || row >= height) {
                        memset(patches, 0, sizeof(float) * 3 * channels);
                        continue;
                    }
                    count skipped = x == 0, taken = 3 - skipped - (x == width - 1);
                    if (taken < 3) memset(patches, 0, sizeof(float) * 3 * channels);
                    memcpy(patches + skipped * channels, source + skipped * channels,
                           sizeof(float) * taken * channels);
                }
}

/* values = the patches added back to where they came from, tap after tap. */
void fedwave_overlap(const float *restrict patches, count images, count height, count width, count channels,
                     float *restrict values) {
    for (count image = 0; image < images; image++, patches += height * width * 9 * channels)
        for (count y = 0; y < height; y++)
            for (count x = 0; x < width; x++, values += channels) {
                memset(values, 0, sizeof(float) * channels);
                for (int tap = 0; tap < 9; tap++) {
                    count row = y + 1 - tap / 3, column = x + 1 - tap % 3;
                    if (row < 0 || row >= height || column < 0 || column >= width) continue;
                    const float *own = patches + ((row * width + column) * 9 + tap) * channels;
                    for (count c = 0; c < channels; c++) values[c] += own[c];
                }
            }
}
