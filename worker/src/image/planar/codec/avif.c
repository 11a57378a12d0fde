/* Planes to AVIF with Debian's libavif and aom. In C because libavif 0.11 is used through the fields of its structures,
 * whose layout only its header knows. */

#include <avif/avif.h>
#include <stdio.h>
#include <string.h>

struct sluice_avif_image {
    const uint8_t *planes[3];
    uint32_t strides[3];
    uint32_t width, height;
    int full_chroma; /* 4:4:4, else 4:2:0 */
    int quantizer;   /* 0 (best) to 63 */
    int speed;       /* 0 to 10 */
};

static avifResult encode(avifEncoder *encoder, avifImage *image, const struct sluice_avif_image *source, avifRWData *output) {
    char level[4];
    snprintf(level, sizeof level, "%d", source->quantizer);
    encoder->codecChoice = AVIF_CODEC_CHOICE_AOM;
    encoder->maxThreads = 1;
    encoder->speed = source->speed;
    encoder->minQuantizer = AVIF_QUANTIZER_BEST_QUALITY;
    encoder->maxQuantizer = AVIF_QUANTIZER_WORST_QUALITY;
    avifEncoderSetCodecSpecificOption(encoder, "end-usage", "q");
    avifEncoderSetCodecSpecificOption(encoder, "cq-level", level);
    avifEncoderSetCodecSpecificOption(encoder, "tune", "ssim");
    /* What JFIF means: sRGB in full-range BT.601. */
    image->yuvRange = AVIF_RANGE_FULL;
    image->colorPrimaries = AVIF_COLOR_PRIMARIES_BT709;
    image->transferCharacteristics = AVIF_TRANSFER_CHARACTERISTICS_SRGB;
    image->matrixCoefficients = AVIF_MATRIX_COEFFICIENTS_BT601;
    image->imageOwnsYUVPlanes = AVIF_FALSE;
    for (int plane = 0; plane < 3; plane++) {
        image->yuvPlanes[plane] = (uint8_t *)source->planes[plane];
        image->yuvRowBytes[plane] = source->strides[plane];
    }
    return avifEncoderWrite(encoder, image, output);
}

/* 0 and the bytes, which sluice_avif_free frees; anything else is a failure without bytes. */
int sluice_avif_encode(const struct sluice_avif_image *source, uint8_t **bytes, size_t *length) {
    avifRWData output = AVIF_DATA_EMPTY;
    avifEncoder *encoder = avifEncoderCreate();
    avifImage *image = avifImageCreate(source->width, source->height, 8,
                                       source->full_chroma ? AVIF_PIXEL_FORMAT_YUV444 : AVIF_PIXEL_FORMAT_YUV420);
    avifResult result = AVIF_RESULT_UNKNOWN_ERROR;
    if (encoder && image)
        result = encode(encoder, image, source, &output);
    if (image)
        avifImageDestroy(image);
    if (encoder)
        avifEncoderDestroy(encoder);
    if (result != AVIF_RESULT_OK)
        avifRWDataFree(&output);
    *bytes = output.data;
    *length = output.size;
    return result == AVIF_RESULT_OK ? 0 : 1;
}

void sluice_avif_free(uint8_t *bytes, size_t length) {
    avifRWData data = {bytes, length};
    avifRWDataFree(&data);
}
